-- The words of one tenant; texts themselves are not stored twice. `vocab` tells how common a word is.
CREATE VIRTUAL TABLE messages_text_{tenant} USING fts5(
    text, content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 0");
CREATE VIRTUAL TABLE cards_text_{tenant} USING fts5(
    text, content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 0");
CREATE VIRTUAL TABLE memories_text_{tenant} USING fts5(
    text, content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 0");
CREATE VIRTUAL TABLE messages_vocab_{tenant} USING fts5vocab(messages_text_{tenant}, row);
CREATE VIRTUAL TABLE cards_vocab_{tenant} USING fts5vocab(cards_text_{tenant}, row);
CREATE VIRTUAL TABLE memories_vocab_{tenant} USING fts5vocab(memories_text_{tenant}, row);
