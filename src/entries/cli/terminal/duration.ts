const UNITS: readonly (readonly [ms: number, unit: string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
];

/** A duration in its largest unit, such as `3 min`. */
export function duration(ms: number): string {
  const positive = Math.max(0, ms);
  for (const [unitMs, unit] of UNITS) {
    if (positive < unitMs) continue;
    const value = positive / unitMs;
    return `${value < 10 && unit !== 'd' ? Math.floor(value * 10) / 10 : Math.floor(value)} ${unit}`;
  }
  return `${Math.round(positive)} ms`;
}

/** How far a time is from now: `3 min ago`, `in 2 h`. */
export function fromNow(date: Date, nowMs: number): string {
  const ms = date.getTime() - nowMs;
  return ms > 0 ? `in ${duration(ms)}` : `${duration(-ms)} ago`;
}
