import type { QueueLimiter } from '../limits/queue-limiter.ts';
import type { AttemptEnvironment } from './attempt.ts';
import type { BeginningsOptions } from './beginnings.ts';
import type { ConcludeOptions } from './conclude.ts';
import type { Handler } from './handler.ts';

/** What the attempts of one queue work with. */
export interface AttemptsOptions
  extends Omit<ConcludeOptions, 'leave' | 'onUnwritten'>,
    Omit<BeginningsOptions, 'tables'> {
  readonly environment: AttemptEnvironment;
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly concurrency: number;
  /** `undefined` where the queue has no limits. */
  readonly limiter?: QueueLimiter | undefined;
  /** Whether an outcome that the database refuses is tried again and again, until `stop`. */
  readonly persistent: boolean;
  /** Called when a slot is free, or an outcome is written. */
  readonly onChange: () => void;
}
