"""Operations on memories: recall with receipts, maintenance, forgetting."""
