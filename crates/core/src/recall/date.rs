//! Dates: the days that a question names, and the day of a message, all in UTC.

use crate::message::MillisSinceEpoch;

const MILLIS_A_DAY: i64 = 86_400_000;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH: i64 = 719_468;

/// A day, counted from 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Day(pub(super) i64);

impl Day {
    /// Returns the day of a time.
    pub(super) fn of(time: MillisSinceEpoch) -> Self {
        Self(time.0.div_euclid(MILLIS_A_DAY))
    }

    /// Returns the day of a date of the Gregorian calendar; the day of the month may pass its end.
    fn from_date(year: i64, month: i64, day: i64) -> Self {
        // Years begin in March here, so that the leap day is their last day.
        let year = if month > 2 { year } else { year - 1 };
        let month_from_march = (month + 9) % 12;
        let before = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        Self(365 * year + before + (153 * month_from_march + 2) / 5 + day - 1 - EPOCH)
    }

    /// Returns year, month and day of the month.
    fn date(self) -> (i64, i64, i64) {
        // The first guess is too late, since it takes years as too short or too long; the calendar corrects it.
        let length = if self.0 < 0 { 366 } else { 365 };
        let mut year = 1971 + self.0.div_euclid(length);
        while Self::from_date(year, 1, 1) > self {
            year -= ((Self::from_date(year, 1, 1).0 - self.0) / 366).max(1);
        }
        let month =
            (1..=12).rev().find(|month| Self::from_date(year, *month, 1) <= self).unwrap_or(1);
        (year, month, self.0 - Self::from_date(year, month, 1).0 + 1)
    }
}

/// Writes a time to the second, `2023-05-08T13:56:00`.
pub(crate) fn written(time: MillisSinceEpoch) -> String {
    let (year, month, day) = Day::of(time).date();
    let seconds = time.0.rem_euclid(MILLIS_A_DAY) / 1000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar.
#[cfg(test)]
pub(crate) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    Day::from_date(year, month, day).0
}

/// A day, month or year that a question names; a month or day without a year is that of any year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Period {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
}

/// The weight of a year alone beside a month or day (chosen: whole dialogues lie in one year).
const YEAR_ALONE: f32 = 0.5;

impl Period {
    /// Returns how near a day is to the period: 1 within it, falling to the e-th part every `days` after it, 0 before it.
    ///
    /// People mention an event on its day or soon after.
    pub(super) fn nearness(self, day: Day, days: f32) -> f32 {
        let (this_year, _, _) = day.date();
        let years = match self.year {
            Some(year) => [year, year],
            None => [this_year - 1, this_year],
        };
        years.iter().map(|year| self.nearness_in(*year, day, days)).fold(0.0, f32::max)
    }

    fn nearness_in(self, year: i64, day: Day, days: f32) -> f32 {
        let (begin, end) = match (self.month, self.day) {
            (None, _) => (Day::from_date(year, 1, 1), Day::from_date(year + 1, 1, 1)),
            (Some(month), None) => (
                Day::from_date(year, month, 1),
                Day::from_date(year + month / 12, month % 12 + 1, 1),
            ),
            (Some(month), Some(of_month)) => {
                let begin = Day::from_date(year, month, of_month);
                (begin, Day(begin.0 + 1))
            }
        };
        let weight = if self.month.is_none() { YEAR_ALONE } else { 1.0 };
        if day < begin {
            0.0
        } else if day < end {
            weight
        } else if self.month.is_none() {
            0.0
        } else {
            weight * (-((day.0 - end.0 + 1) as f32) / days.max(f32::MIN_POSITIVE)).exp()
        }
    }
}

#[rustfmt::skip]
const MONTHS: [&str; 12] = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
];

/// Reads the periods that a question names: months by their English names, with or without day and year, `2023-05-08`,
/// and years if there is nothing else.
pub(super) fn periods(question: &str) -> Vec<Period> {
    let words: Vec<&str> =
        question.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut found = Vec::new();
    for at in 0..words.len() {
        found.extend(with_month(&words, at).or_else(|| by_numbers(&words, at)));
    }
    if found.is_empty() {
        let years = words.iter().filter_map(|word| year(word));
        found.extend(years.map(|year| Period { year: Some(year), month: None, day: None }));
    }
    found
}

fn with_month(words: &[&str], at: usize) -> Option<Period> {
    let after = |ahead: usize| words.get(at + ahead).copied();
    let before = |back: usize| at.checked_sub(back).and_then(|at| words.get(at)).copied();
    let month = month(words[at])?;
    let behind = after(1).and_then(day_of_month);
    let ahead = match before(1) {
        Some("of") => before(2).and_then(day_of_month),
        word => word.and_then(day_of_month),
    };
    let year = after(if behind.is_some() { 2 } else { 1 }).and_then(year);
    // Some names of months are words as well; a number beside them makes them months.
    let named = words[at].starts_with(char::is_uppercase) || words[at].len() > 5;
    (named || behind.or(ahead).or(year).is_some()).then_some(Period {
        year,
        month: Some(month),
        day: behind.or(ahead),
    })
}

fn by_numbers(words: &[&str], at: usize) -> Option<Period> {
    let number = |word: Option<&&str>, most: i64| {
        let word = word.filter(|word| word.len() == 2)?;
        word.parse::<i64>().ok().filter(|number| (1..=most).contains(number))
    };
    let year = year(words[at])?;
    let month = number(words.get(at + 1), 12)?;
    Some(Period { year: Some(year), month: Some(month), day: number(words.get(at + 2), 31) })
}

/// Reads a month by its name or the beginning of it.
fn month(word: &str) -> Option<i64> {
    let word = word.to_ascii_lowercase();
    let full = MONTHS.iter().position(|month| *month == word);
    let short = || MONTHS.iter().position(|month| word.len() == 3 && month.starts_with(&*word));
    let found = full.or_else(short).or((word == "sept").then_some(8))?;
    i64::try_from(found + 1).ok()
}

fn day_of_month(word: &str) -> Option<i64> {
    let digits =
        ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    let short = digits.len() <= 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|day| short && (1..=31).contains(day))
}

fn year(word: &str) -> Option<i64> {
    let digits = word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|year| digits && (1900..2100).contains(year))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(year: i64, month: i64, day: i64) -> Day {
        Day::from_date(year, month, day)
    }

    #[test]
    fn days_and_dates_agree() {
        assert_eq!(day(1970, 1, 1), Day(0));
        assert_eq!(day(2000, 3, 1).0, 11_017);
        for number in (-1_000_000..1_000_000).step_by(371).chain([-719_468, 59, 60]) {
            let (year, month, of_month) = Day(number).date();
            assert_eq!(day(year, month, of_month), Day(number));
            assert!((1..=12).contains(&month) && (1..=31).contains(&of_month), "{number}");
        }
        assert_eq!(written(MillisSinceEpoch(1_683_554_160_000)), "2023-05-08T13:56:00");
        assert_eq!(written(MillisSinceEpoch(-1000)), "1969-12-31T23:59:59");
        for far in [i64::MIN, i64::MAX] {
            assert!(written(MillisSinceEpoch(far)).len() > 19);
        }
    }

    #[test]
    fn questions_name_days_months_and_years() {
        let check = |question: &str, expected: &[(Option<i64>, Option<i64>, Option<i64>)]| {
            let found: Vec<_> =
                periods(question).iter().map(|p| (p.year, p.month, p.day)).collect();
            assert_eq!(found, expected, "{question}");
        };
        check("on May 3, 2023?", &[(Some(2023), Some(5), Some(3))]);
        check("on 3 May 2023", &[(Some(2023), Some(5), Some(3))]);
        check("on the 3rd of may", &[(None, Some(5), Some(3))]);
        check("in June or in Sept 2022", &[(None, Some(6), None), (Some(2022), Some(9), None)]);
        check("on 2023-05-08", &[(Some(2023), Some(5), Some(8))]);
        check("in summer 2021", &[(Some(2021), None, None)]);
        check("what may he march for?", &[]);
        check("Aug 15th", &[(None, Some(8), Some(15))]);
        check("version 12.04, 99 0000 2500", &[]);
    }

    #[test]
    fn what_happened_is_told_soon_after() {
        let near = |question: &str, said: Day| periods(question)[0].nearness(said, 7.0);
        let is = |near: f32, expected: f32| assert!((near - expected).abs() < 1e-6, "{near}");
        is(near("in May 2023", day(2023, 5, 31)), 1.0);
        is(near("in May 2023", day(2023, 4, 30)), 0.0);
        assert!(near("in May 2023", day(2023, 6, 1)) > near("in May", day(2023, 6, 9)));
        is(near("in December", day(2022, 12, 31)), 1.0);
        assert!(near("on 31 December", day(2023, 1, 2)) > 0.7);
        is(near("in 2021", day(2021, 7, 1)), 0.5);
        is(near("in 2021", day(2022, 1, 1)), 0.0);
    }
}
