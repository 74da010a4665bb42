"""Operations on what is remembered: found with receipts, cared for, forgotten."""
