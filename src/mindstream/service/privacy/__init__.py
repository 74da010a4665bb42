"""Privacy: retention rules, export of all data of a person, erasure of a person or a tenant, the audit log."""
