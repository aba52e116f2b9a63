import { nowMs } from '../../child/counter.ts';
import { type EnqueuerRequest, openEnqueuer } from '../../child/enqueuer.ts';

export interface TransactionsRequest extends EnqueuerRequest {
  readonly warmUpMs: number;
  readonly measuredMs: number;
}

export interface TransactionsResult {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** As many transactions as so many connections can do, each one after the other: an order and its job. */
export async function transactions(request: TransactionsRequest): Promise<TransactionsResult> {
  const { connections, warmUpMs, measuredMs } = request;
  const { order, close } = await openEnqueuer(request);
  if (order === undefined) throw new TypeError(`${request.enqueuer} takes no transaction`);
  const startMs = nowMs() + warmUpMs;
  const endMs = startMs + measuredMs;
  const durations: number[] = [];
  let n = 0;
  async function client(): Promise<void> {
    for (let beginMs = nowMs(); beginMs < endMs; ) {
      await order?.(n++);
      const doneMs = nowMs();
      if (beginMs >= startMs && doneMs <= endMs) durations.push(doneMs - beginMs);
      beginMs = doneMs;
    }
  }
  await Promise.all(Array.from({ length: connections }, client));
  await close();
  durations.sort((a, b) => a - b);
  const at = (share: number) => durations[Math.floor(durations.length * share)] ?? Number.NaN;
  return { perSecond: (durations.length * 1_000) / measuredMs, p50Ms: at(0.5), p99Ms: at(0.99) };
}
