"""Operations on a user's memories: recall with receipts (why each was found), maintenance, forgetting."""
