import type { AttemptEnvironment } from '../run/attempt.ts';
import type { Handler } from '../run/handler.ts';
import type { EndingsOptions } from '../settle/endings.ts';
import type { BeginningsOptions } from './beginnings.ts';
import type { Gate } from './gate.ts';
import type { Runs } from './runs.ts';

/** What the attempts of one queue work with. */
export interface AttemptsOptions extends EndingsOptions, Omit<BeginningsOptions, 'tables'> {
  readonly environment: AttemptEnvironment;
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly concurrency: number;
  /** Whether peers may take this worker for gone. Then nothing begins. */
  readonly isCutOff: () => boolean;
  /** Where its jobs run one after the other. @default they do not */
  readonly runs?: Runs | undefined;
  /** `undefined` where a job begins as soon as a slot is free. */
  readonly gate?: Gate | undefined;
  /** Called when a slot is free, or an outcome is written. */
  readonly onChange: () => void;
}
