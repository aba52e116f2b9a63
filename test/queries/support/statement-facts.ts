import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';

/*
 * What the docstring of a statement says about it, by tags such as `@crossesQueues (searched; of a key) why`. In
 * parentheses are the forms of the statement that the tag is about, as statements.ts names them; `plain` is the form that
 * has the name of the function alone. A tag without parentheses is about all forms.
 */

const TAGS = ['crossesQueues', 'endsHold', 'insteadOnCitus', 'waitsOnCitus'] as const;
type Tag = (typeof TAGS)[number];

/** What is said about one form of a statement. */
export interface Facts {
  /** Why it may read jobs of queues that it does not name. */
  readonly crossesQueues?: string | undefined;
  /** Why it may go through the one door out of a hold. */
  readonly endsHold?: string | undefined;
  /** What happens on Citus, which is never sent it. */
  readonly insteadOnCitus?: Replacement | undefined;
  /** Why it may wait on Citus for as long as another transaction holds a lock: no `lock_timeout` ends that there. */
  readonly waitsOnCitus?: string | undefined;
}

/** `@insteadOnCitus finishJobsQuery, of free rows: why` */
export interface Replacement {
  /** The name of a statement that Citus is sent, or {@link AN_ERROR}. */
  readonly instead: string;
  /** `undefined`: Citus refuses it, by a rule of citus-rules.ts. */
  readonly why: string | undefined;
}

const AN_ERROR = 'an error';

const WITHOUT_WORKFLOWS: Replacement = {
  instead: AN_ERROR,
  why: 'no worker starts there whose queue has workflows',
};
/**
 * Folders of which Citus is sent no statement. docs/scaling.md does not say where their tables would lie, so the rules
 * find only some of what a cluster refuses.
 */
const FOLDERS_NOT_ON_CITUS = new Map([
  ['features/batches/', WITHOUT_WORKFLOWS],
  ['features/workflows/', WITHOUT_WORKFLOWS],
]);

export interface FoundFacts {
  readonly about: (name: string) => Facts;
  /** What is wrong with the tags, one line each. */
  readonly mistakes: readonly string[];
}

/** What the sources of the library say about the statements of these names. */
export function factsOf(names: readonly string[]): FoundFacts {
  const folder = new URL('../../../src/', import.meta.url);
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const sources = paths
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => [path.replaceAll('\\', '/'), readFileSync(new URL(path, folder), 'utf8')] as const);
  return readFacts(new Map(sources), names);
}

/**
 * @param sources texts by their path in `src`
 * @param names of all forms of the statements: `findDueQuery`, `findDueQuery, of one queue`
 */
export function readFacts(sources: ReadonlyMap<string, string>, names: readonly string[]): FoundFacts {
  const files = [...sources].map(([path, text]) => readSource(path, text));
  const mistakes = files.flatMap(({ strays }) => strays);
  const said = new Map(names.map((name) => [name, new Map<Tag, string>()]));
  for (const { path, statement, tag, forms, reason } of files.flatMap(({ tags }) => tags)) {
    const at = `${path}: @${tag} of ${statement}`;
    if (reason === '') mistakes.push(`${at} has no reason`);
    for (const name of forms ?? names.filter((each) => statementOf(each) === statement)) {
      const known = said.get(name);
      if (known === undefined) mistakes.push(`${at} is about '${name}', which is not in statements.ts`);
      if (known?.has(tag)) mistakes.push(`${at} is about '${name}', and so is another one`);
      known?.set(tag, reason);
    }
  }
  const paths = new Map(files.flatMap(({ path, statements }) => statements.map((each) => [each, path])));
  const facts = new Map<string, Facts>();
  for (const [name, known] of said) {
    const path = paths.get(statementOf(name));
    if (path === undefined) mistakes.push(`${name} is not exported by a file in a folder queries`);
    const own = known.get('insteadOnCitus');
    const [ofFolder] = [...FOLDERS_NOT_ON_CITUS].filter(([folder]) => path?.startsWith(folder));
    if (ofFolder && own !== undefined) {
      mistakes.push(
        `${path}: @insteadOnCitus of '${name}' is not needed: it is said of ${ofFolder[0]} as a whole`,
      );
    }
    facts.set(name, {
      crossesQueues: known.get('crossesQueues'),
      endsHold: known.get('endsHold'),
      insteadOnCitus: ofFolder?.[1] ?? (own === undefined ? undefined : toReplacement(own)),
      waitsOnCitus: known.get('waitsOnCitus'),
    });
  }
  for (const [name, { insteadOnCitus }] of facts) {
    const instead = insteadOnCitus?.instead ?? AN_ERROR;
    const isSent = facts.has(instead) && facts.get(instead)?.insteadOnCitus === undefined;
    if (instead !== AN_ERROR && !isSent) {
      mistakes.push(`@insteadOnCitus of '${name}' names '${instead}', which is not sent there either`);
    }
  }
  return { about: (name) => facts.get(name) ?? {}, mistakes };
}

/** The name of the function, without that of the form. */
function statementOf(name: string): string {
  return name.split(', ', 1)[0] ?? name;
}

function toReplacement(text: string): Replacement {
  const [, instead = '', why] = /^(.*?)(?:: (.*))?$/.exec(text) ?? [];
  return { instead, why };
}

interface WrittenTag {
  readonly path: string;
  readonly statement: string;
  readonly tag: Tag;
  /** The names of the forms that it is about; `undefined`: all. */
  readonly forms: readonly string[] | undefined;
  readonly reason: string;
}

interface SourceOfStatements {
  readonly path: string;
  readonly statements: readonly string[];
  readonly tags: readonly WrittenTag[];
  /** Tags elsewhere, as mistakes. */
  readonly strays: readonly string[];
}

const ANY_TAG = new RegExp(`@(?:${TAGS.join('|')})\\b`, 'g');

function readSource(path: string, text: string): SourceOfStatements {
  const isOfStatements = /\/queries\/.*\.ts$/.test(path);
  const written = [...text.matchAll(ANY_TAG)];
  if (!isOfStatements && written.length === 0) return { path, statements: [], tags: [], strays: [] };
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found = file.statements.flatMap((node) => {
    const statement = isOfStatements ? exportedStatement(node) : undefined;
    return statement === undefined ? [] : [{ statement, tags: ts.getJSDocTags(node) }];
  });
  const places = new Set(found.flatMap(({ tags }) => tags.map(({ pos }) => pos)));
  const strays = written.filter(({ index }) => !places.has(index));
  return {
    path,
    statements: found.map(({ statement }) => statement),
    tags: found.flatMap(({ statement, tags }) =>
      tags.flatMap((tag) => toWritten({ path, statement }, tag) ?? []),
    ),
    strays: strays.map(({ index, 0: tag }) => {
      const line = file.getLineAndCharacterOfPosition(index).line + 1;
      return `${path}:${line}: ${tag} is not in the docstring of an exported statement`;
    }),
  };
}

/** The name of what is exported as a statement: a function `…Query`, or a constant where it has no parameters. */
function exportedStatement(node: ts.Statement): string | undefined {
  const isFunction = ts.isFunctionDeclaration(node);
  if (!isFunction && !ts.isVariableStatement(node)) return undefined;
  if (!node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) return undefined;
  const name = (isFunction ? node : node.declarationList.declarations[0])?.name?.getText();
  return name?.endsWith('Query') ? name : undefined;
}

function toWritten(
  of: Pick<WrittenTag, 'path' | 'statement'>,
  { tagName, comment }: ts.JSDocTag,
): WrittenTag | undefined {
  const tag = TAGS.find((each) => each === tagName.text);
  if (tag === undefined) return undefined;
  const text = (ts.getTextOfJSDocComment(comment) ?? '').replaceAll(/\s+/g, ' ').trim();
  const [, listed, reason = ''] = /^(?:\(([^)]*)\) ?)?(.*)$/.exec(text) ?? [];
  const forms = listed
    ?.split(';')
    .map((form) => form.trim())
    .map((form) => (form === 'plain' ? of.statement : `${of.statement}, ${form}`));
  return { ...of, tag, forms, reason };
}
