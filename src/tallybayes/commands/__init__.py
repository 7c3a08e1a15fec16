"""The commands, one file per noun. Each is a thin shell: it reads options, calls the library, and shows what came back.

Only click is imported at the top of these files; the library is loaded when a command runs.
"""
