import { packOrder, sendReceipt } from '../jobs.ts';
import type { PlacedOrder } from './customers.ts';
import type { Evidence } from './evidence.ts';
import { openingStock, skus } from './plan.ts';

/** A number (or text) that is known from the plan, and what was found in its place. */
export interface Check {
  readonly what: string;
  readonly expected: number | string;
  readonly found: number | string;
}

export function holds({ expected, found }: Check): boolean {
  return expected === found;
}

/** Everything that must add up: the plan against the shop's answers, the database, and how the workers ended. */
export function checksOf(
  placed: readonly PlacedOrder[],
  evidence: Evidence,
  exitCodes: readonly (number | string)[],
): Check[] {
  return [
    ...checkOrders(placed, evidence),
    ...checkAttempts(placed, evidence),
    ...checkEffects(placed, evidence),
    { what: 'Jobs still to do', expected: 0, found: evidence.jobsLeft },
    { what: 'Workers still registered', expected: 0, found: evidence.workersLeft },
    {
      what: 'Exit codes of the workers',
      expected: exitCodes.map(() => 0).join(', '),
      found: exitCodes.join(', '),
    },
  ];
}

/** What an order's commit must have made, and a declined order's rollback must not. */
function checkOrders(
  placed: readonly PlacedOrder[],
  { orders, outcomes, jobsWithoutOrder }: Evidence,
): Check[] {
  const accepted = plannedToAccept(placed).length;
  const answered = (status: number) => placed.filter((order) => order.status === status).length;
  const acceptedIds = new Set(placed.filter(({ status }) => status === 201).map(({ orderId }) => orderId));
  const ids = new Set(orders.map(({ order }) => order.id));
  const jobsOf = ({ kind }: { kind: string }) => sum(outcomes, (row) => (row.kind === kind ? row.jobs : 0));
  const complete = orders.filter(({ receipt, parcel }) => receipt !== null && parcel !== null);
  return [
    { what: 'Orders accepted over HTTP (201)', expected: accepted, found: answered(201) },
    { what: 'Orders declined over HTTP (402)', expected: placed.length - accepted, found: answered(402) },
    { what: 'Orders in the database', expected: accepted, found: ids.size },
    {
      what: '… that HTTP accepted',
      expected: accepted,
      found: [...ids].filter((id) => acceptedIds.has(id)).length,
    },
    { what: 'Results of send-receipt', expected: accepted, found: jobsOf(sendReceipt) },
    { what: 'Results of pack-order', expected: accepted, found: jobsOf(packOrder) },
    // A second result of either kind would join as a second row.
    { what: 'Orders joined to one result of each', expected: accepted, found: complete.length },
    { what: 'Jobs of orders that were rolled back', expected: 0, found: jobsWithoutOrder },
  ];
}

/** What the outside world's failures must have led to. */
function checkAttempts(placed: readonly PlacedOrder[], { orders, outcomes, discarded }: Evidence): Check[] {
  const toAccept = plannedToAccept(placed);
  const plans = toAccept.map(({ planned }) => planned);
  const toDiscard = plans.filter(({ receipt }) => receipt.state === 'discarded');
  const plannedById = new Map(toAccept.map(({ orderId, planned }) => [orderId, planned]));
  const asPlanned = orders.filter(({ order, receipt, parcel }) => {
    const planned = plannedById.get(order.id);
    return (
      planned !== undefined &&
      receipt?.state === planned.receipt.state &&
      receipt.attempts === planned.receipt.attempts &&
      parcel?.state === planned.parcel.state &&
      parcel.attempts === planned.parcel.attempts
    );
  });
  const attemptsOf = ({ kind }: { kind: string }) =>
    sum(outcomes, (row) => (row.kind === kind ? row.jobs * row.attempts : 0));
  const receiptAttempts = sum(plans, ({ receipt }) => receipt.attempts);
  const parcelAttempts = sum(plans, ({ parcel }) => parcel.attempts);
  // Of each job, every attempt has failed but the last; of a discarded one, the last as well.
  const failures = receiptAttempts + parcelAttempts - 2 * plans.length + toDiscard.length;
  return [
    { what: 'Orders whose jobs ended as planned', expected: plans.length, found: asPlanned.length },
    { what: 'Attempts of send-receipt', expected: receiptAttempts, found: attemptsOf(sendReceipt) },
    { what: 'Attempts of pack-order', expected: parcelAttempts, found: attemptsOf(packOrder) },
    { what: 'Failures recorded', expected: failures, found: sum(outcomes, (row) => row.failures) },
    { what: 'Receipts discarded', expected: toDiscard.length, found: discarded.length },
    {
      what: '… and why',
      expected: '550 No such mailbox',
      found: [...new Set(discarded.map(({ errors }) => errors.at(-1)?.message))].join(', '),
    },
  ];
}

/** What the handlers must have written, once per job however often it was tried. */
function checkEffects(placed: readonly PlacedOrder[], { orders, stock }: Evidence): Check[] {
  const plans = plannedToAccept(placed).map(({ planned }) => planned);
  const toMail = plans.filter(({ receipt }) => receipt.state === 'completed').length;
  const receiptIds = orders
    .filter(({ order, receipt }) => order.receiptId !== null && order.receiptId === receipt?.output)
    .map(({ order }) => order.receiptId);
  const parcelIds = orders
    .filter(({ order, parcel }) => order.parcelId !== null && order.parcelId === parcel?.output)
    .map(({ order }) => order.parcelId);
  const unitsSold = (sku: string) => sum(plans, ({ cart }) => (cart.sku === sku ? cart.quantity : 0));
  return [
    { what: 'Receipt ids equal to the output', expected: toMail, found: new Set(receiptIds).size },
    {
      what: 'Orders without a receipt',
      expected: plans.length - toMail,
      found: orders.filter(({ order }) => order.receiptId === null).length,
    },
    { what: 'Parcel ids equal to the output', expected: plans.length, found: new Set(parcelIds).size },
    {
      what: `Stock taken of ${skus.join(', ')}`,
      expected: skus.map(unitsSold).join(', '),
      found: skus.map((sku) => openingStock - (stock.get(sku) ?? 0)).join(', '),
    },
  ];
}

function plannedToAccept(placed: readonly PlacedOrder[]): PlacedOrder[] {
  return placed.filter(({ planned }) => planned.accepted);
}

function sum<T>(items: readonly T[], amount: (item: T) => number): number {
  return items.reduce((total, item) => total + amount(item), 0);
}
