#!/bin/sh
# A validator for the examples: a report is valid once it says that it is the tenth draft.
if grep -q 'draft 10'; then
    printf '{"valid": true, "reason": ""}\n'
else
    printf '{"valid": false, "reason": "the report leaves out the eastern quays and gives no date for the next survey; every quay needs a line with its worst finding, its depth and who will mend it, in the order of the harbour plan"}\n'
fi
