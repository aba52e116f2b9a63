import { describe } from 'vitest';
import { useRedis, WITHOUT_REDIS } from './redis.ts';
import { testSystem } from './test-system.ts';

const redis = useRedis();
if (WITHOUT_REDIS !== undefined) console.warn(`Skipped: BullMQ on Redis, since ${WITHOUT_REDIS}`);

describe.skipIf(WITHOUT_REDIS !== undefined)('with a Redis server', () => testSystem('bullmqOnRedis', redis));
