import type { Precision } from './queue-stats.ts';
import type { Vital, VitalCode } from './queue-vitals.ts';

export interface Judgement {
  readonly code: VitalCode;
  readonly unit: Vital['unit'];
  /** From this value on it is worth a warning; `Infinity` for never. */
  readonly warningFrom: number;
  readonly errorFrom: number;
}

export interface JudgedValue {
  readonly queue?: string;
  readonly kind?: string;
  readonly worker?: string;
  readonly value: number;
  readonly message: string;
  readonly fix: string;
}

/** A vital for each value that is not ok; if all are, one for all of them with the largest. */
export function judge(by: Judgement, values: readonly JudgedValue[], okMessage: string): Vital[] {
  const { code, unit, warningFrom, errorFrom } = by;
  const bad = values.filter(({ value }) => value >= Math.min(warningFrom, errorFrom));
  if (bad.length === 0) {
    const value = values.reduce((largest, one) => Math.max(largest, one.value), 0);
    const about = { queue: undefined, kind: undefined };
    return [{ code, severity: 'ok', ...about, value, unit, message: okMessage, fix: '' }];
  }
  return bad.map(({ queue, kind, worker, value, message, fix }) => ({
    code,
    severity: value >= errorFrom ? 'error' : 'warning',
    ...{ queue, kind, ...(worker !== undefined && { worker }), value, unit, message, fix },
  }));
}

export function unknown(code: VitalCode, unit: Vital['unit'], message: string, fix: string): Vital {
  const about = { queue: undefined, kind: undefined, value: undefined };
  return { code, severity: 'unknown', ...about, unit, message, fix };
}

export function isWell(vitals: readonly Vital[]): boolean {
  return vitals.every(({ severity }) => severity === 'ok');
}

/** A count for people, and how good it is. */
export function amountInWords(count: number, precision: Precision): string {
  if (precision === 'exact') return String(count);
  return precision === 'unknown'
    ? 'an unknown number of'
    : `${precision === 'at-least' ? 'at least' : 'about'} ${count}`;
}

/** Whether it is certain that there is one, so that the words for several do not fit. */
export function isOne(count: number, precision: Precision): boolean {
  return count === 1 && precision === 'exact';
}

/** A duration for people. */
export function inWords(ms: number): string {
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} minutes`;
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)} hours` : `${Math.round(ms / 86_400_000)} days`;
}
