import type { System } from '../../harness/system.ts';
import { drizzleQueue } from '../drizzle-queue/system.ts';
import type { LimitOptions } from './work.ts';

const options: LimitOptions = { batch: 500 };

/** What the statements alone allow on this machine, without a worker around them. */
export const limit: System = {
  ...drizzleQueue(''),
  name: 'the limit (bare postgres.js)',
  setup: `the library's claim and finish statements, ${options.batch} jobs each, prepared, on 2 connections; no handlers, no results`,
  program: 'limit',
  options,
};
