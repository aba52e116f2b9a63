const PLANS = [
  'is well',
  'breaks',
  'is busy',
  'is in maintenance',
  'answers into the void',
  'refuses',
  'is well',
  'is well',
] as const;

export type Plan = (typeof PLANS)[number] | 'hangs';

/** Stands for a status where the receiver gives none. */
export const NO_ANSWER = 0;

/** The order whose event gets no answer at first. */
const HANGING = 7;

/** What the receiver does when it first hears of an order. */
export function planOf(orderId: number): Plan {
  if (orderId === HANGING) return 'hangs';
  return PLANS[orderId % PLANS.length] ?? 'is well';
}
