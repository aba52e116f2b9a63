import { createQueue, type Finding, type FindingCode } from 'drizzle-queue';
import { expectTypeOf, test } from 'vitest';
import { mysql2, neonHttp, postgresJs } from './databases.ts';

const queue = createQueue();

test('check answers findings, which are told apart by their code', () => {
  expectTypeOf(queue.check(postgresJs)).resolves.toEqualTypeOf<Finding[]>();
  // It needs no transaction.
  expectTypeOf(queue.check(neonHttp)).resolves.toEqualTypeOf<Finding[]>();
  expectTypeOf<Finding['severity']>().toEqualTypeOf<'error' | 'warning' | 'hint'>();
  expectTypeOf<Finding['code']>().toEqualTypeOf<FindingCode>();
  expectTypeOf<'tables-missing'>().toExtend<FindingCode>();
  // @ts-expect-error not a Postgres database
  queue.check(mysql2);
});
