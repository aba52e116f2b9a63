import { expect, test } from 'vitest';
import { tables } from './support/jobs.ts';
import { factsOf, readFacts } from './support/statement-facts.ts';
import { allStatements } from './support/statements.ts';

const NAMES = ['findItQuery', 'findItQuery, of one queue', 'findItQuery, kept, of groups', 'endItQuery'];

/** What is found where this is the docstring of `findItQuery`. */
function found(docstring: string, folder = 'core/queries/operate') {
  return readFacts(
    new Map([
      [`${folder}/find-it.ts`, `${docstring}\nexport function findItQuery(tables: QueueTables): SQL {}\n`],
      ['core/queries/settle/end-it.ts', 'export const endItQuery: SQL = sql`select`;\n'],
    ]),
    NAMES,
  );
}

test('the sources say what they say about statements without a mistake', () => {
  expect(factsOf(Object.keys(allStatements(tables))).mistakes).toEqual([]);
});

test('a tag is about all forms of its statement, and of no other', () => {
  const { about, mistakes } = found('/** @crossesQueues by its id alone */');
  expect(mistakes).toEqual([]);
  expect(NAMES.map((name) => about(name).crossesQueues)).toEqual([
    'by its id alone',
    'by its id alone',
    'by its id alone',
    undefined,
  ]);
});

test('a tag is about the forms that it names', () => {
  const { about, mistakes } = found(`/**
 * Finds it.
 *
 * @param tables anything
 * @crossesQueues (plain; kept, of groups) by its id,
 * whatever (so to speak) its queue
 * @crossesQueues (of one queue) for another reason
 */`);
  expect(mistakes).toEqual([]);
  expect(NAMES.map((name) => about(name).crossesQueues)).toEqual([
    'by its id, whatever (so to speak) its queue',
    'for another reason',
    'by its id, whatever (so to speak) its queue',
    undefined,
  ]);
});

test('a replacement has a reason where Citus would take the statement', () => {
  const { about, mistakes } = found(`/**
 * @insteadOnCitus (plain) findItQuery, of one queue
 * @insteadOnCitus (kept, of groups) an error: there are no groups
 */`);
  expect(mistakes).toEqual([]);
  expect(NAMES.map((name) => about(name).insteadOnCitus)).toEqual([
    { instead: 'findItQuery, of one queue', why: undefined },
    undefined,
    { instead: 'an error', why: 'there are no groups' },
    undefined,
  ]);
});

test('statements of workflows and batches need no tag', () => {
  const { about } = found('', 'features/workflows/queries');
  expect(about('findItQuery, of one queue').insteadOnCitus?.instead).toBe('an error');
  expect(about('endItQuery').insteadOnCitus).toBe(undefined);
});

test.each([
  ['/** @crossesQueues */', 'has no reason'],
  ['/** @crossesQueues (plain) */', 'has no reason'],
  ['/** @crossesQueues (of two queues) why */', "is about 'findItQuery, of two queues', which is not in"],
  ['/**\n * @endsHold why\n * @endsHold (plain) why\n */', "is about 'findItQuery', and so is another one"],
  ['/** @insteadOnCitus loseItQuery */', "names 'loseItQuery', which is not sent there either"],
  ['/** @insteadOnCitus (plain) findItQuery */', "names 'findItQuery', which is not sent there either"],
  ['// @crossesQueues why', 'find-it.ts:1: @crossesQueues is not in the docstring'],
  ['/** @endsHold why */\nconst one = 1;', 'find-it.ts:1: @endsHold is not in the docstring'],
  ['/** @endsHold why */\nfunction someQuery() {}', 'find-it.ts:1: @endsHold is not in the docstring'],
])('a mistake is found: %s', (docstring, mistake) => {
  expect(found(docstring).mistakes.join('\n')).toContain(mistake);
});

test('a mistake is found: a tag outside the statements, or one that a whole folder needs none of', () => {
  const outside = found('/** @crossesQueues why */', 'core/sql').mistakes.join('\n');
  expect(outside).toContain('core/sql/find-it.ts:1: @crossesQueues is not in the docstring');
  expect(outside).toContain('findItQuery is not exported by a file in a folder queries');
  const twice = found('/** @insteadOnCitus an error */', 'features/batches/queries').mistakes.join('\n');
  expect(twice).toContain("@insteadOnCitus of 'findItQuery' is not needed: it is said of features/batches/");
});
