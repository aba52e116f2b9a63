/** A quotient as in a table. */
export function times(value: number, of: number): string {
  const ratio = value / of;
  return Number.isFinite(ratio) ? `${ratio.toFixed(ratio < 10 ? 2 : 0)}×` : '–';
}

/** A number as in a table; a dash where there is none. */
export function figure(value: number | undefined, digits?: number): string {
  if (value === undefined || !Number.isFinite(value)) return '–';
  digits ??= value > 0 && value < 10 && !Number.isInteger(value) ? 1 : 0;
  return value.toLocaleString('en-GB', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function percent(value: number | undefined): string {
  return value === undefined || !Number.isFinite(value) ? '–' : `${(value * 100).toFixed(0)} %`;
}
