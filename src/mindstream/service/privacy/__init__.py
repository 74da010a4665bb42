"""Privacy: retention, all data of a person, erasing a person or a tenant, the audit."""
