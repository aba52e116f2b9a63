import { cards } from '../outside-world.ts';
import type { Cart } from '../shop.ts';

/** One order of the demo, and what is to become of it. */
export interface PlannedOrder {
  readonly cart: Cart;
  readonly accepted: boolean;
  readonly receipt: { readonly state: 'completed' | 'discarded'; readonly attempts: number };
  readonly parcel: { readonly state: 'completed'; readonly attempts: number };
}

export const skus = ['mug', 'book', 'vase', 'lamp'] as const;
export const openingStock = 1_000;

const names = ['ada', 'ben', 'cleo', 'dora', 'emil', 'fay', 'gus'];

/** The orders of the demo: the same every time, so that every number is known before the first order is placed. */
export function planOrders(count: number): PlannedOrder[] {
  return Array.from({ length: count }, (_, index) => plan(index + 1, count));
}

function plan(number: number, count: number): PlannedOrder {
  const accepted = number % 10 !== 0;
  const sku = skus[number % skus.length] ?? 'mug';
  const { email, ...receipt } = mailFor(number, count);
  return {
    cart: { email, sku, quantity: 1 + (number % 3), card: accepted ? cards.good : cards.declined },
    accepted,
    receipt,
    // The first one breaks.
    parcel: { state: 'completed', attempts: sku === 'vase' ? 2 : 1 },
  };
}

function mailFor(number: number, count: number): PlannedOrder['receipt'] & { email: string } {
  const name = `${names[number % names.length]}.${number}`;
  if (number === Math.floor(count / 2) + 1) {
    return { email: 'nobody@void.example', state: 'discarded', attempts: 1 };
  }
  if (number % 12 === 4) return { email: `${name}@busy.example`, state: 'completed', attempts: 3 };
  if (number % 6 === 1) return { email: `${name}@greylist.example`, state: 'completed', attempts: 2 };
  return { email: `${name}@mail.example`, state: 'completed', attempts: 1 };
}
