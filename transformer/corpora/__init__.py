"""Where sentences come from: the Hub, local files, the embedded sample grammars."""
