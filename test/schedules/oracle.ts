/** Which values a field of a cron expression allows: lists of `*`, values, ranges and steps, no names. */
function allowed(text: string, min: number, max: number): Set<number> {
  const values = new Set<number>();
  for (const item of text.split(',')) {
    const [range = '', step = '1'] = item.split('/');
    const [low, high] = range === '*' ? [min, max] : range.split('-').map(Number);
    for (let value = low ?? 0; value <= (high ?? low ?? 0); value += Number(step)) values.add(value);
  }
  return values;
}

/** Whether an expression of five fields matches a time on a wall, written as if it were UTC. */
export function matcherOf(expression: string): (wallMs: number) => boolean {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = expression.split(' ');
  const minutes = allowed(minute, 0, 59);
  const hours = allowed(hour, 0, 23);
  const days = allowed(day, 1, 31);
  const months = allowed(month, 1, 12);
  const weekdays = new Set([...allowed(weekday, 0, 7)].map((value) => value % 7));
  return (wallMs) => {
    const wall = new Date(wallMs);
    if (!minutes.has(wall.getUTCMinutes()) || !hours.has(wall.getUTCHours())) return false;
    if (!months.has(wall.getUTCMonth() + 1)) return false;
    const byDay = days.has(wall.getUTCDate());
    const byWeekday = weekdays.has(wall.getUTCDay());
    return day !== '*' && weekday !== '*' ? byDay || byWeekday : byDay && byWeekday;
  };
}

const MINUTE_MS = 60_000;

/** What the clock of a zone shows at each of so many minutes, written as if it were UTC. */
export function wallsOf(timeZone: string, fromMs: number, minutes: number): number[] {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
  return Array.from({ length: minutes }, (_, minute) =>
    Date.parse(`${format.format(fromMs + minute * MINUTE_MS).replace(' ', 'T')}Z`),
  );
}

/**
 * Walks through the minutes as a cron daemon does, and tells when it fires: the rule of Vixie's cron, where every
 * hour is one however it is written, said in another way than the library computes it.
 */
export function walk(expression: string, walls: readonly number[], fromMs: number): number[] {
  const matches = matcherOf(expression);
  const everyHour = allowed(expression.split(' ')[1] ?? '', 0, 23).size === 24;
  const fired: number[] = [];
  let newest = (walls[0] ?? 0) - MINUTE_MS;
  for (const [minute, wall] of walls.entries()) {
    let fires = false;
    if (everyHour) fires = matches(wall);
    // Whatever the clock has passed since the last minute, and never a time that it has shown before.
    else for (let at = newest + MINUTE_MS; at <= wall; at += MINUTE_MS) fires ||= matches(at);
    if (fires) fired.push(fromMs + minute * MINUTE_MS);
    newest = Math.max(newest, wall);
  }
  return fired;
}
