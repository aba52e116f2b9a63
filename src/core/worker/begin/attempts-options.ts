import type { Serial } from '../../../features/limits/sql/grouping.ts';
import type { QueueLimiter } from '../../../features/limits/worker/queue-limiter.ts';
import type { AttemptEnvironment } from '../run/attempt.ts';
import type { Handler } from '../run/handler.ts';
import type { EndingsOptions } from '../settle/endings.ts';
import type { BeginningsOptions } from './beginnings.ts';

/** What the attempts of one queue work with. */
export interface AttemptsOptions extends EndingsOptions, Omit<BeginningsOptions, 'tables'> {
  readonly environment: AttemptEnvironment;
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly concurrency: number;
  /** Whether peers may take this worker for gone. Then nothing begins. */
  readonly isCutOff: () => boolean;
  /** Where the jobs of a group run one after the other. */
  readonly serial?: Serial | undefined;
  /** `undefined` where the queue has no limits. */
  readonly limiter?: QueueLimiter | undefined;
  /** Called when a slot is free, or an outcome is written. */
  readonly onChange: () => void;
}
