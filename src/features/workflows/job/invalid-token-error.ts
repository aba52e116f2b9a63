import { QueueError } from '../../../errors.ts';

/** A token was not made by `step.token` with one of the secrets, or not for this signal. */
export class InvalidTokenError extends QueueError {
  override name = 'InvalidTokenError';
  static override readonly brand: symbol = /* @__PURE__ */ Symbol.for('drizzle-queue.InvalidTokenError');
  /**
   * `malformed`: it is not a token. `signature`: none of the secrets has signed it. `signal`: it is for
   * another signal.
   */
  constructor(readonly reason: 'malformed' | 'signature' | 'signal') {
    super(`The token is invalid: ${REASONS[reason]}`);
  }
}

const REASONS = {
  malformed: 'it is not a text that step.token has returned',
  signature: 'none of the secrets of workflowsIn has signed it',
  signal: 'it is for another signal',
} as const;
