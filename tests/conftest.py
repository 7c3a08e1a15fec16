"""What all tests share: importing the helpers beside them (cases, strategies, shared_data) by name."""
