/**
 * For child processes in a run with DRIZZLE=v1 (`node --import ./test/support/drizzle-v1.mjs …`): imports of drizzle-orm get the
 * second installed copy, 1.0. In vitest itself an alias does the same.
 */
import { register } from 'node:module';

const hooks = `export function resolve(specifier, context, next) {
  return next(specifier.replace(/^drizzle-orm(?=\\/|$)/, 'drizzle-orm-v1'), context);
}`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
