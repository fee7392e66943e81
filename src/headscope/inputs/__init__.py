"""What a model may read that is no text: pictures, sounds, and inputs that are ready for it."""
