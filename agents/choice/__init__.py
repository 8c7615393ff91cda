"""The choice among the other methods: one name to type, and the rules by which it chooses."""
