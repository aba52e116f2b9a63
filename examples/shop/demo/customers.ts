import { setTimeout as delay } from 'node:timers/promises';
import type { PlannedOrder } from './plan.ts';

/** A planned order and what the shop answered to it. */
export interface PlacedOrder {
  readonly planned: PlannedOrder;
  readonly status: number;
  /** Given by the shop to accepted orders only. */
  readonly orderId: number | undefined;
}

/** Has several customers place the orders over HTTP, all at once and each one order after the other. */
export async function placeOrders(
  shopUrl: string,
  plan: readonly PlannedOrder[],
  { customers, signal, onAnswer }: PlaceOrdersOptions,
): Promise<void> {
  // One iterator for all of them: each takes the next order from it.
  const orders = plan.values();
  const customer = async (): Promise<void> => {
    for (const planned of orders) {
      onAnswer(await placeOrder(shopUrl, planned, signal));
      await delay(20 + Math.random() * 120, undefined, { signal });
    }
  };
  await Promise.all(Array.from({ length: customers }, customer));
}

export interface PlaceOrdersOptions {
  readonly customers: number;
  readonly signal: AbortSignal;
  onAnswer(placed: PlacedOrder): void;
}

async function placeOrder(shopUrl: string, planned: PlannedOrder, signal: AbortSignal): Promise<PlacedOrder> {
  const response = await fetch(`${shopUrl}/orders`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(planned.cart),
    signal,
  });
  const answer: unknown = await response.json();
  const hasId = typeof answer === 'object' && answer !== null && 'orderId' in answer;
  return { planned, status: response.status, orderId: hasId ? Number(answer.orderId) : undefined };
}
