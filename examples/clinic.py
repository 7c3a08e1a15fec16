"""A first model in one screen: five patients, two questions, and the reasons for the answers."""

import tallybayes as tb

patients = {
    "Headache": ["severe", "no", "mild", "mild", "severe"],
    "Sore": ["mild", "severe", "mild", "no", "severe"],
    "Temperature": ["high", "normal", "normal", "normal", "normal"],
    "Cough": ["yes", "yes", "yes", "no", "yes"],
    "Diagnosis": ["Flu", "Cold", "Flu", "Cold", "Flu"],
}

schema = tb.infer(patients, target="Diagnosis")
print(schema, end="\n\n")

tally = tb.count(patients, schema)
print(tally, end="\n\n")

model = tally.model()
print(model, end="\n\n")

ann = {"Headache": "mild", "Sore": "severe", "Temperature": "normal", "Cough": "no"}
print("Ann:", model.explain(ann), end="\n\n")

fifth = {name: [values[4]] for name, values in patients.items()}
print("Without the fifth patient, as if never counted:", tally.forget(fifth))
print("Counted again, the same tally to the last bit: ", tally.forget(fifth).update(fifth) == tally)
