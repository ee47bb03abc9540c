//! Accounts that can be added up by hand.
