import { aging } from './aging.ts';
import { batchHandling } from './batch-handling.ts';
import { batching } from './batching.ts';
import type { Behaviour } from './behaviour.ts';
import { enqueueing } from './enqueueing.ts';
import { keyRules } from './key-rules.ts';
import { limiting } from './limiting.ts';
import { scheduling } from './scheduling.ts';
import { sessions } from './sessions.ts';
import { transactional } from './transactional.ts';
import { uniqueKeys } from './unique-keys.ts';
import { waking } from './waking.ts';
import { workflows } from './workflows.ts';
import { working } from './working.ts';

/** What every driver, every version of the server, of drizzle-orm and of Node.js must do: the library from end to end. */
export const allBehaviours: readonly Behaviour[] = [
  ...enqueueing,
  ...uniqueKeys,
  ...batching,
  ...working,
  ...transactional,
  ...batchHandling,
  ...waking,
  ...sessions,
  ...scheduling,
  ...limiting,
  ...keyRules,
  ...workflows,
  ...aging,
];
