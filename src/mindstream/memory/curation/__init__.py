"""What people do to a memory: corrections, forgetting, audits."""
