import type { Precision } from '../../index.ts';

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** A duration as people read it: `340 ms`, `4.2 s`, `3 min 5 s`, `2 d 4 h`. */
export function durationText(ms: number): string {
  const abs = Math.max(0, ms);
  if (abs < 1_000) return `${Math.round(abs)} ms`;
  if (abs < 10_000) return `${(Math.floor(abs / 100) / 10).toFixed(1)} s`;
  const first = UNITS.findIndex(([, size]) => abs >= size);
  const [unit, size] = UNITS[first] ?? ['s', 1_000];
  const whole = Math.floor(abs / size);
  const next = UNITS[first + 1];
  const rest = next === undefined ? 0 : Math.floor((abs - whole * size) / next[1]);
  return `${whole} ${unit}${next !== undefined && rest > 0 ? ` ${rest} ${next[0]}` : ''}`;
}

/** How far a time is from now: `3 min ago`, `in 2 h`. */
export function agoText(at: Date, nowMs: number): string {
  const ms = nowMs - at.getTime();
  if (Math.abs(ms) < 1_000) return 'now';
  const [unit, size] = UNITS.find(([, size]) => Math.abs(ms) >= size) ?? ['s', 1_000];
  const text = `${Math.floor(Math.abs(ms) / size)} ${unit}`;
  return ms < 0 ? `in ${text}` : `${text} ago`;
}

/** A count with thin groups of three digits: 12,400. */
export function countText(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** A count and how good it is: `12,400`, `10,000+`, `≈ 122,800`, `?`. */
export function amountText(count: number, precision: Precision): string {
  if (precision === 'unknown') return '?';
  const text = countText(count);
  if (precision === 'at-least') return `${text}+`;
  return precision === 'exact' || count === 0 ? text : `≈ ${text}`;
}
