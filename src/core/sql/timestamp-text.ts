/** 4713 BC, before which PostgreSQL has no times. */
const EARLIEST_MS = Date.UTC(-4712, 0, 1);

/**
 * A time as PostgreSQL reads it. `toISOString` writes a year before Christ as -000043, which PostgreSQL takes
 * for a time zone; and a job can be due then, where the app's own SQL says so.
 *
 * @param ms milliseconds since 1970; `NaN`, of a time that JavaScript cannot know, is the beginning of time
 */
export function timestampText(ms: number): string {
  if (!(ms >= EARLIEST_MS)) return '-infinity';
  const date = new Date(ms);
  const year = date.getUTCFullYear();
  // Behind the last time of JavaScript.
  if (Number.isNaN(year)) return 'infinity';
  const text = date.toISOString();
  if (year >= 1 && year <= 9_999) return text;
  const rest = text.slice(text.indexOf('-', 1));
  return year > 0 ? `${year}${rest}` : `${String(1 - year).padStart(4, '0')}${rest} BC`;
}
