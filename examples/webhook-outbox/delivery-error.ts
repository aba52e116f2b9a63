/** An endpoint has answered, and not with success. */
export class DeliveryError extends Error {
  override name = 'DeliveryError';
  constructor(
    readonly status: number,
    /** How long it asks to be left alone. */
    readonly retryAfterMs: number,
  ) {
    super(`The endpoint answered ${status}`);
  }
}

/** The longest wait that an endpoint may ask for. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/** What a `Retry-After` header asks for: it holds seconds, or a date. */
export function retryAfterMs(header: string | null, now = Date.now()): number {
  if (header === null) return 0;
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now;
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}
