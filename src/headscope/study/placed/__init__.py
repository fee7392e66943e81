"""Studies of pictures or sounds: each file is a document, each patch or frame a position."""
