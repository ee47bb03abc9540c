#!/bin/sh
# A tool for the examples: lists what a survey of one quay found, about 1,500 tokens, the same for the same quay.
exec awk -v quay="$1" 'BEGIN {
    split("bollard crane ladder fender rail lamp hatch winch gate cleat", part, " ");
    split("sound worn rusted loose cracked missing painted new", state, " ");
    seed = 7; for (i = 1; i <= length(quay); i++) seed = (seed * 31 + index("abcdefghijklmnopqrstuvwxyz0123456789_-", substr(quay, i, 1))) % 99991;
    for (n = 1; n <= 75; n++) {
        seed = (seed * 7919 + 13) % 99991; p = seed % 10 + 1;
        seed = (seed * 7919 + 13) % 99991; s = seed % 8 + 1;
        printf "%s/%s-%05d: %s, depth %d.%d m, seen %02d:%02d\n", quay, part[p], seed, state[s], seed % 9, seed % 7, seed % 24, seed % 60;
    }
}'
