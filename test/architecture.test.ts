import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { readSource, type SourceFacts } from './support/source-file.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** A part of `src`: a folder, or the files at its top that belong together. */
interface Part {
  readonly files: RegExp;
  /** The parts that it may import beside itself; `public` are the {@link PUBLIC} files. */
  readonly parts: readonly string[];
  /** Of a feature: the other features that it may import, and why. */
  readonly others?: Readonly<Record<string, string>>;
  /** The packages that it may import. */
  readonly packages: RegExp;
  readonly reason: string;
}

const NOTHING = /^$/;
/** What apps import, and what an entry may take as they do: `public` in the list of its parts. */
const PUBLIC: readonly string[] = [
  'index.ts',
  'core/schema/index.ts',
  'features/control/index.ts',
  'features/metrics/schema/index.ts',
  'features/workflows/schema/index.ts',
  'skip-locked/index.ts',
];
/** Never a driver's subpath: it would load that driver. */
const DRIZZLE = /^drizzle-orm(\/(version|(pg-core|query-builders)(\/.+)?))?$/;

/**
 * From the ground up: a part imports what stands above it in this list, and only what it names. Single files of
 * an entry stand before the rest of it, since the first part that a file fits is its own.
 */
const parts: Readonly<Record<string, Part>> = {
  errors: {
    files: /^errors\.ts$/,
    parts: [],
    packages: NOTHING,
    reason: 'every part may throw them, so they depend on none',
  },
  'skip-locked': {
    files: /^skip-locked\//,
    parts: [],
    packages: DRIZZLE,
    reason: 'a primitive for any table, which knows nothing of jobs',
  },
  'core/runtime': {
    files: /^core\/runtime\.ts$/,
    parts: [],
    packages: NOTHING,
    reason: 'what browsers and edge runtimes have not is asked for at run time, and in one place',
  },
  'core/schema': {
    files: /^core\/schema\//,
    parts: [],
    packages: DRIZZLE,
    reason: 'layer 0: drizzle-kit and the app load the tables without the rest of the library',
  },
  'core/job': {
    files: /^core\/job\//,
    parts: ['errors', 'core/schema'],
    packages: NOTHING,
    reason: 'layer 1: what a job is, pure, so that every case can be tested without a database or a clock',
  },
  'core/sql': {
    files: /^core\/sql\//,
    parts: ['errors', 'core/schema', 'core/job'],
    packages: DRIZZLE,
    reason: 'layer 2: the fragments that statements share, and how one is run',
  },
  'core/queries': {
    files: /^core\/queries\//,
    parts: ['errors', 'core/schema', 'skip-locked', 'core/job', 'core/sql'],
    packages: DRIZZLE,
    reason: 'layer 2: everything said to Postgres, one statement per file, for any database handle',
  },
  'core/time': {
    files: /^core\/time\//,
    parts: ['core/job'],
    packages: NOTHING,
    reason: 'waiting knows nothing of what is waited for',
  },
  'core/drivers': {
    files: /^core\/drivers\//,
    parts: ['errors', 'core/runtime', 'core/schema', 'core/job', 'core/sql', 'core/queries', 'core/time'],
    packages: DRIZZLE,
    reason: 'layer 2: what Drizzle has no API for, one file per driver, without depending on any',
  },
  'core/queue': {
    files: /^core\/queue\//,
    parts: [
      'errors',
      'skip-locked',
      'core/schema',
      'core/job',
      'core/sql',
      'core/queries',
      'core/time',
      'core/drivers',
    ],
    packages: DRIZZLE,
    reason: 'layer 3, the producing side: a web app that only enqueues must not load the worker',
  },
  'core/worker': {
    files: /^core\/worker\//,
    parts: [
      'errors',
      'core/runtime',
      'core/schema',
      'core/job',
      'core/sql',
      'core/queries',
      'core/time',
      'core/drivers',
      'core/queue',
    ],
    packages: DRIZZLE,
    reason: 'layer 4: what a process does',
  },
  'features/control': {
    files: /^features\/control\//,
    parts: ['core/schema'],
    packages: DRIZZLE,
    reason: 'the tables of limits, schedules and keys, which an app exports and migrates together',
  },
  'features/limits': {
    files: /^features\/limits\//,
    parts: ['errors', 'core'],
    others: { 'features/control': 'the tables of the limits, their leases and starts' },
    packages: DRIZZLE,
    reason: 'how many at once and how fast: only who has limits loads it',
  },
  'features/schedules': {
    files: /^features\/schedules\//,
    parts: ['errors', 'core'],
    others: { 'features/control': 'the table of the schedules' },
    packages: new RegExp(`${DRIZZLE.source}|^croner$`),
    reason: 'what fires by the clock: only who has schedules loads it, and croner with it',
  },
  'features/keys': {
    files: /^features\/keys\//,
    parts: ['errors', 'core'],
    others: { 'features/control': 'the table of the keys' },
    packages: DRIZZLE,
    reason: 'debounce, throttle and the like: loaded by the first enqueue that uses one',
  },
  'features/metrics': {
    files: /^features\/metrics\//,
    parts: ['errors', 'core'],
    packages: DRIZZLE,
    reason: 'figures per minute and hour: only who has the table writes them',
  },
  'features/batches': {
    files: /^features\/batches\//,
    parts: ['errors', 'core'],
    packages: DRIZZLE,
    reason: 'counted sets of jobs, for whose end others wait',
  },
  'features/workflows': {
    files: /^features\/workflows\//,
    parts: ['errors', 'core'],
    others: { 'features/batches': 'children and the jobs of a flow are members of batches' },
    packages: DRIZZLE,
    reason: 'steps, waits and signals: only who has the tables loads it',
  },
  'features/batch-handlers': {
    files: /^features\/batch-handlers\//,
    parts: ['errors', 'core'],
    packages: DRIZZLE,
    reason: 'one call of a handler for many jobs',
  },
  'entries/main': {
    files: /^entries\/main\//,
    parts: ['errors', 'core', 'features'],
    packages: DRIZZLE,
    reason: 'the one place that puts the core and the features together, as the main entry exports them',
  },
  entry: {
    files: /^index\.ts$/,
    parts: ['errors', 'core', 'features', 'entries/main'],
    packages: NOTHING,
    reason: 'the curated list of public names; the tables and skip-locked have entries of their own',
  },
  internal: {
    files: /^internal\.ts$/,
    parts: ['core', 'features'],
    packages: NOTHING,
    reason: 'the one way of the entries past the public names',
  },
  'testing-face': {
    files: /^testing-face\.ts$/,
    parts: ['core', 'features'],
    packages: NOTHING,
    reason: 'the kit does what a worker does, in the transaction of a test: no other entry may do that',
  },
  'entries/testing': {
    files: /^entries\/testing\//,
    parts: ['public', 'internal', 'testing-face'],
    packages: new RegExp(`${DRIZZLE.source}|^drizzle-orm/pglite$|^@electric-sql/pglite$`),
    reason: "an entry of its own, for tests: nothing else may load it, and PGlite is the app's, if it has it",
  },
  'entries/opentelemetry': {
    files: /^entries\/opentelemetry\//,
    parts: ['public', 'internal'],
    packages: /^@opentelemetry\/api$/,
    reason: 'an entry of its own over the public API: only who traces loads it, and its peer with it',
  },
  'entries/dashboard/assets/bundled': {
    files: /^entries\/dashboard\/assets\/bundled\.ts$/,
    parts: [],
    packages: NOTHING,
    reason: 'made by a program from what browsers run: a list of texts',
  },
  'entries/dashboard/browser': {
    files: /^entries\/dashboard\/browser\//,
    parts: ['entries/dashboard'],
    packages: /^(uplot|idiomorph\/dist\/idiomorph\.esm\.js)$/,
    reason: 'what browsers run, bundled into texts; it shares only how times are written',
  },
  'entries/filter': {
    files: /^entries\/filter\//,
    parts: ['public', 'internal'],
    packages: NOTHING,
    reason: 'the one language in which people name jobs, in the dashboard and the command line',
  },
  'entries/dashboard': {
    files: /^entries\/dashboard\//,
    parts: ['public', 'internal', 'entries/filter', 'entries/dashboard/assets/bundled'],
    packages: /^(drizzle-orm|hono(\/.+)?)$/,
    reason: 'an entry of its own, which nothing else imports: a queue without a dashboard has none of it',
  },
  'entries/import': {
    files: /^entries\/import\//,
    parts: ['public', 'internal'],
    // What is said to the tables of others is not ours to test for Citus, and stands beside what reads it.
    packages: DRIZZLE,
    reason: 'an entry of its own, which nothing else loads: the systems are named here and nowhere else',
  },
  'entries/shards': {
    files: /^entries\/shards\//,
    parts: ['public', 'internal'],
    packages: NOTHING,
    reason: 'an entry of its own over workers of one database: nothing of the core knows of several',
  },
  'entries/config': {
    files: /^entries\/config\//,
    parts: ['public', 'entries/dashboard', 'entries/import', 'entries/shards'],
    packages: NOTHING,
    reason:
      'types of what apps tell the command line; it loads the workers and the dashboard when they are asked for',
  },
  'entries/cli/project/load-module': {
    files: /^entries\/cli\/project\/load-module\.ts$/,
    parts: ['entries/cli'],
    // Files of the app, and its drivers.
    packages: /^(node:\w+|import\(url\.href\)|tsx\/cjs\/api)$/,
    reason: 'the one place that loads what an app has',
  },
  'entries/cli': {
    files: /^entries\/cli\//,
    parts: [
      'public',
      'internal',
      'entries/filter',
      'entries/dashboard',
      'entries/import',
      'entries/shards',
      'entries/config',
      'entries/cli/project/load-module',
    ],
    packages: /^(node:[\w/]+|commander|string-width|drizzle-orm(\/(pg-core|postgres-js|node-postgres))?)$/,
    reason: 'a program over the public API; drivers are those of the app, loaded when used',
  },
};

/**
 * Rooms by the order of their folders: a file imports from its own folder and from those before it. `.` is
 * what stands at the top of a room. A file that has a place of its own is named.
 */
const orders: Readonly<Record<string, readonly string[]>> = {
  'core/queries': ['enqueue', 'claim', 'begin', 'hold', 'presence', 'settle', 'browse', 'operate'],
  'core/queue': ['enqueue', 'wait', 'operate', 'stats', 'check', '.'],
  'core/worker': ['base', 'statements', 'run', 'settle', 'begin', 'claim', 'presence', 'upkeep', 'log', '.'],
  'features/batches': ['schema', 'sql', 'queries', '.', 'worker'],
  'features/keys': ['queries', '.', 'worker'],
  'features/limits': ['settings', 'sql', 'queries', 'worker', '.'],
  'features/metrics': ['job', 'schema', 'sql', 'queries', '.', 'worker'],
  'features/schedules': ['sql', 'queries', '.', 'worker'],
  'features/workflows': ['schema', 'job', 'tokens', 'sql', 'queries', 'worker', '.'],
  'entries/shards': ['shard.ts', 'workers', '.'],
  'entries/import': [
    'foreign-job.ts',
    'sources/bullmq-scripts.ts',
    'sources/bullmq-jobs.ts',
    'sources/bullmq-lists.ts',
    'source.ts',
    'sources',
    'queries',
    '.',
  ],
  'entries/dashboard': [
    'html.ts',
    'answer.ts',
    'assets',
    '.',
    'parts',
    'pages',
    'deed.ts',
    'redrive-cause.ts',
    'from-step.ts',
    'actions.ts',
    'create-dashboard.tsx',
    'to-node.ts',
    'index.ts',
  ],
  'entries/cli': [
    'exit-code.ts',
    'failure.ts',
    'interruption.ts',
    'nearest.ts',
    'terminal',
    'project',
    'sql',
    'init',
    '.',
    'commands',
    'program.ts',
    'main.ts',
    'bin.ts',
  ],
};

/** What makes a function depend on more than its arguments. */
const IMPURE =
  /^(Date\.now|new Date\(\)|Math\.random|(performance|process|globalThis|crypto|console)(\..*)?|set(Timeout|Interval|Immediate)|queueMicrotask|fetch|require)$/;

const PURE_REASON = 'no I/O, no clock and no chance in a folder named job, so that every case can be tested';

/** The one place for chance, where a caller can replace it. */
const ALLOWED_IMPURITIES = new Map([['core/job/backoff.ts', 'Math.random']]);

const MAX_COLUMNS = 110;
const COLUMNS_REASON = 'biome breaks code there; comments and SQL are read beside it';

/** Texts that no person writes or reads. */
const GENERATED = 'entries/dashboard/assets/bundled.ts';

const NAMELESS = /(^|[/-])(utils?|helpers?|managers?|misc)[/.-]|(^|\/)(common|shared|lib|types)[/.]/;
const NAMELESS_REASON = 'such a name says nothing, so anything may go in';

/** What is wrong with these source files, by path in `src`: one line each. */
function violations(sources: ReadonlyMap<string, string>): string[] {
  const facts = new Map([...sources].map(([path, text]) => [path, factsOf(path, text)]));
  return [...facts]
    .flatMap(([path, source]) => [
      ...importViolations(path, source, sources),
      ...purityViolations(path, source),
      ...shapeViolations(path, sources.get(path) ?? ''),
    ])
    .concat(cycleViolations(facts));
}

const known = new Map<string, SourceFacts>();

/** What a source file says; read once, however often it is asked for. */
function factsOf(path: string, text: string): SourceFacts {
  const facts = known.get(text) ?? readSource(path, text);
  known.set(text, facts);
  return facts;
}

const placed = new Map<string, [name: string, part: Part] | undefined>();

/** The part that a file belongs to; found once, however often it is asked for. */
function partOf(path: string): [name: string, part: Part] | undefined {
  if (!placed.has(path)) {
    placed.set(
      path,
      Object.entries(parts).find(([, part]) => part.files.test(path)),
    );
  }
  return placed.get(path);
}

function importViolations(path: string, source: SourceFacts, sources: ReadonlyMap<string, string>): string[] {
  const [name, part] = partOf(path) ?? [];
  if (name === undefined || part === undefined)
    return [`${path} belongs to no part: give it a place in test/architecture.test.ts`];
  return source.imports.flatMap((specifier) => {
    const broken = (rule: string) => `${path} imports ${specifier}: ${rule} (${part.reason})`;
    if (!specifier.startsWith('.')) {
      return part.packages.test(specifier) ? [] : [broken(`${name} may not import this package`)];
    }
    const target = resolve(path, specifier);
    if (!sources.has(target)) return [broken('there is no such file in src')];
    const [targetName = 'nothing'] = partOf(target) ?? [];
    if (targetName === name) return outOfOrder(name, path, target);
    const mayImport = [...part.parts, ...Object.keys(part.others ?? {})];
    const allowed = mayImport.some(
      (each) =>
        targetName === each ||
        targetName.startsWith(`${each}/`) ||
        (each === 'public' && PUBLIC.includes(target)),
    );
    if (allowed) return [];
    return [broken(`${name} may import ${mayImport.join(', ') || 'no other part'}, not ${targetName}`)];
  });
}

function outOfOrder(room: string, path: string, target: string): string[] {
  const order = orders[room];
  if (order === undefined) return [];
  const [from, to] = [
    placeIn(order, path.slice(room.length + 1)),
    placeIn(order, target.slice(room.length + 1)),
  ];
  if (from < 0) return [`${path} is in no folder of the order of ${room}: ${order.join(' < ')}`];
  return to <= from ? [] : [`${path} imports ${target}, against the order of ${room}: ${order.join(' < ')}`];
}

/** The place of a file in the order of its room, by its own name or that of its folder; -1: it has none. */
function placeIn(order: readonly string[], file: string): number {
  const own = order.indexOf(file);
  return own < 0 ? order.indexOf(/^([^/]+)\//.exec(file)?.[1] ?? '.') : own;
}

function resolve(path: string, specifier: string): string {
  return posix.join(posix.dirname(path), specifier);
}

function purityViolations(path: string, { globals }: SourceFacts): string[] {
  if (!/^core\/job\/|^features\/\w+\/job\//.test(path)) return [];
  return globals
    .filter((global) => IMPURE.test(global) && ALLOWED_IMPURITIES.get(path) !== global)
    .map((global) => `${path} uses ${global} (${PURE_REASON})`);
}

function shapeViolations(path: string, text: string): string[] {
  if (path === GENERATED) return [];
  const lines = text.trimEnd().split('\n');
  const wide = lines.findIndex((line) => line.length > MAX_COLUMNS) + 1;
  return [
    ...(wide > 0 ? [`${path}:${wide} is longer than ${MAX_COLUMNS} characters (${COLUMNS_REASON})`] : []),
    ...(NAMELESS.test(path) ? [`${path} is named after no concept (${NAMELESS_REASON})`] : []),
  ];
}

/** One line per circle of imports, type imports included. */
function cycleViolations(facts: ReadonlyMap<string, SourceFacts>): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) {
      const circle = [...trail.slice(trail.indexOf(path)), path].join(' -> ');
      found.push(
        `${circle} is a circle (files in a circle can only be understood, loaded and moved together)`,
      );
      return;
    }
    if (done.has(path)) return;
    for (const specifier of facts.get(path)?.imports ?? []) {
      if (specifier.startsWith('.')) visit(resolve(path, specifier), [...trail, path]);
    }
    done.add(path);
  };
  for (const path of facts.keys()) visit(path, []);
  return found;
}

/** The files of `src`, by their path in it. */
function readSources(): Map<string, string> {
  const paths = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  return new Map(
    paths
      .filter((path) => /\.tsx?$/.test(path))
      .map((path) => [path.replaceAll('\\', '/'), readFileSync(join(root, 'src', path), 'utf8')]),
  );
}

const sources = readSources();

test('the sources keep to the layers', () => {
  expect(sources.size).toBeGreaterThan(40);
  expect(violations(sources)).toEqual([]);
});

test('a web app that only enqueues loads nothing of the worker', () => {
  // How a driver listens, for those who ask for end notices.
  const loaded = new Set(['core/queue/wait/notice-listener.ts']);
  const load = (path: string): void => {
    if (loaded.has(path)) return;
    loaded.add(path);
    for (const specifier of factsOf(path, sources.get(path) ?? '').imports) {
      if (specifier.startsWith('.')) load(resolve(path, specifier));
    }
  };
  load('entries/main/create-queue.ts');
  expect(loaded).toContain('core/queries/enqueue/insert-jobs.ts');
  // Of the drivers, what `stats` and `check` use, which is loaded when they are called.
  expect([...loaded].filter((path) => /\/(worker|drivers|batch-handlers)\//.test(path))).toEqual([
    'core/drivers/within-time.ts',
    'core/drivers/transaction-until.ts',
    'core/drivers/single-connection.ts',
    'core/drivers/pooled-by-transaction.ts',
  ]);
});

test('a queue knows schedules by their types alone, so that only who has any loads croner', () => {
  const importsOfValues = [...sources].filter(
    ([path, text]) =>
      /^entries\/main\/(create-queue|queue-options)\.ts$/.test(path) &&
      /^import (?!type\b)[^;]*from '[./]+features\/schedules\//m.test(text),
  );
  expect(importsOfValues.map(([path]) => path)).toEqual([]);
});

test('every room with folders of its own names their order', () => {
  const rooms = new Map<string, string[]>();
  for (const path of sources.keys()) {
    const [room = ''] = partOf(path) ?? [];
    if (path.startsWith(`${room}/`))
      rooms.set(room, [...(rooms.get(room) ?? []), path.slice(room.length + 1)]);
  }
  const withFolders = [...rooms].filter(([, files]) => files.some((file) => file.includes('/')));
  expect(withFolders.map(([room]) => room).sort()).toEqual(Object.keys(orders).sort());
  for (const [room, files] of withFolders) {
    const order = orders[room] ?? [];
    const places = new Set(files.map((file) => order[placeIn(order, file)]));
    expect([...places].sort(), room).toEqual([...order].sort());
  }
});

/** Files that build several statements, and why these stay together. */
const STATEMENTS_TOGETHER: Readonly<Record<string, string>> = {
  'core/queries/enqueue/insert-jobs.ts': 'one insert, with and without unique keys',
  'core/queries/browse/browse-by-run-at.ts': 'a page, and how far it was read',
  'core/queries/browse/find-many.ts': 'a count and a look by one filter',
  'core/queries/browse/find-of-cause.ts': 'a count and a look by one filter',
  'core/queries/operate/prune-queue.ts': 'what Citus needs in place of one statement',
  'core/queries/presence/find-requests.ts': 'one question, with and without jobs',
  'core/queries/presence/remove-gone-workers.ts':
    'a test of workers, and their removal; Citus needs it in two',
  'features/keys/queries/prune-keys.ts': 'one delete, and what Citus needs in its place',
  'features/limits/queries/find-limits.ts': 'limits of queues, and of single groups',
  'features/limits/queries/note-groups.ts': 'notes that no other statement has written',
  'features/schedules/queries/find-schedules.ts': 'one and many',
  'features/schedules/queries/pause-schedule.ts': 'a pause and its end',
  'features/schedules/queries/tidy-schedules.ts': 'one statement, and what Citus needs in its place',
};

test('a file builds one statement, but for those that belong together', () => {
  const builders = [...sources].flatMap(([path, text]) =>
    /^(core|features)\/.*\bqueries\//.test(path)
      ? [[path, [...text.matchAll(/^export function \w+Query\b/gm)].length] as const]
      : [],
  );
  expect(builders.filter(([, count]) => count === 1).length).toBeGreaterThan(80);
  const several = builders.filter(([, count]) => count > 1).map(([path]) => path);
  expect(several.sort()).toEqual(Object.keys(STATEMENTS_TOGETHER).sort());
});

test('the core imports neither a feature nor an entry', () => {
  const beyond = [...sources].flatMap(([path, text]) =>
    path.startsWith('core/')
      ? factsOf(path, text)
          .imports.filter((each) => each.startsWith('.'))
          .map((specifier) => resolve(path, specifier))
          .filter((target) => !/^(core\/|errors\.ts$|skip-locked\/)/.test(target))
          .map((target) => `${path} imports ${target}`)
      : [],
  );
  expect(beyond).toEqual([]);
});

/** The names that a file imports or exports from others whose specifier is one of these. */
function namesFrom(path: string, specifier: RegExp): string[] {
  const file = ts.createSourceFile(path, sources.get(path) ?? '', ts.ScriptTarget.Latest, true);
  return file.statements.flatMap((statement) => {
    const clause = ts.isExportDeclaration(statement)
      ? statement.exportClause
      : ts.isImportDeclaration(statement)
        ? statement.importClause?.namedBindings
        : undefined;
    if (clause === undefined || !(ts.isNamedExports(clause) || ts.isNamedImports(clause))) return [];
    if (!specifier.test(factsOf(`${path}:${statement.pos}`, statement.getText()).imports[0] ?? '')) return [];
    return clause.elements.map((each) => (each.propertyName ?? each.name).text);
  });
}

test.each([
  ['internal.ts', /^entries\/(?!testing\/)/],
  ['testing-face.ts', /^entries\/testing\//],
])(
  'the face that entries have beside the public names has what they take, and nothing public: %s',
  (face, takers) => {
    const offered = namesFrom(face, /^\./);
    const taken = [...sources.keys()]
      .filter((path) => takers.test(path))
      .flatMap((path) => namesFrom(path, new RegExp(`/${face}$`)));
    expect(offered.length).toBeGreaterThan(50);
    expect([...new Set(taken)].sort()).toEqual([...offered].sort());
    expect(PUBLIC.flatMap((path) => namesFrom(path, /^\./)).filter((name) => offered.includes(name))).toEqual(
      [],
    );
  },
);

test('a feature imports another only for a reason of its own', () => {
  const features = Object.entries(parts).filter(([name]) => name.startsWith('features/'));
  expect(features.flatMap(([, part]) => part.parts).filter((each) => each.startsWith('features'))).toEqual(
    [],
  );
  const imported = new Set(
    [...sources.keys()].flatMap((path) =>
      factsOf(path, sources.get(path) ?? '').imports.map(
        (specifier) => `${partOf(path)?.[0]}: ${partOf(resolve(path, specifier))?.[0]}`,
      ),
    ),
  );
  const allowed = features.flatMap(([name, { others = {} }]) =>
    Object.keys(others).map((other) => `${name}: ${other}`),
  );
  expect(allowed.filter((each) => !imported.has(each))).toEqual([]);
});

test('an exception that is no longer needed is taken back', () => {
  for (const [path, global] of ALLOWED_IMPURITIES)
    expect(factsOf(path, sources.get(path) ?? '').globals).toContain(global);
});

describe('the package', () => {
  const manifest: {
    dependencies?: object;
    peerDependencies: object;
    sideEffects: boolean;
    exports: Record<string, unknown>;
  } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

  test('brings no dependency of its own, and has drizzle-orm for a peer', () => {
    expect(manifest).not.toHaveProperty('dependencies');
    expect(manifest).not.toHaveProperty('bundledDependencies');
    expect(manifest.peerDependencies).toHaveProperty('drizzle-orm');
    expect(manifest.sideEffects).toBe(false);
  });

  test.each([...sources.keys()].filter((path) => basename(path) === 'index.ts'))(
    'the entry %s exports names, one by one, and no default',
    (path) => {
      const file = ts.createSourceFile(path, sources.get(path) ?? '', ts.ScriptTarget.Latest, true);
      const bad = file.statements.filter(
        (statement) =>
          ts.isExportAssignment(statement) ||
          (ts.isExportDeclaration(statement) &&
            (statement.exportClause === undefined || !ts.isNamedExports(statement.exportClause))),
      );
      expect(bad.map((statement) => statement.getText())).toEqual([]);
    },
  );

  test('the main entry holds nothing but exports', () => {
    const file = ts.createSourceFile('index.ts', sources.get('index.ts') ?? '', ts.ScriptTarget.Latest, true);
    const other = file.statements.filter((statement) => !ts.isExportDeclaration(statement));
    expect(other.map((statement) => statement.getText())).toEqual([]);
  });

  test('its values are these: a new one is a decision', async () => {
    expect(Object.keys(await import('drizzle-queue')).sort()).toEqual([
      'BatchError',
      'ChildFailedError',
      'DuplicateStepError',
      'InvalidOutputError',
      'InvalidPayloadError',
      'InvalidSignalError',
      'InvalidTokenError',
      'JobCancelledError',
      'JobDeadlineError',
      'JobFailedError',
      'JobGoneError',
      'JobTimeoutError',
      'LeaseLostError',
      'MailboxFullError',
      'MissingMigrationError',
      'NestedStepError',
      'NoAnswerError',
      'NonRetryableError',
      'QueueError',
      'StepFailedError',
      'StepLimitError',
      'StepMismatchError',
      'UnknownKindError',
      'UnsupportedPostgresError',
      'WaitTimeoutError',
      'WorkerLostError',
      'cancel',
      'createQueue',
      'createWorker',
      'defineJob',
      'defineSchedule',
      'defineSignal',
      'drain',
      'exponentialBackoff',
      'fail',
      'fixedBackoff',
      'handle',
      'handleBatch',
      'handlersFor',
      'healthHandler',
      'isCancel',
      'isFail',
      'isFinal',
      'isSnooze',
      'isWait',
      'limitsIn',
      'logWorker',
      'runNext',
      'schedulesIn',
      'snooze',
      'unvalidated',
      'workflowsIn',
    ]);
  });
});

describe('the rules find', () => {
  const before = new Set(violations(sources));

  /** What is wrong once this file is added to the sources. */
  function wrongWith(path: string, text: string): string {
    const added = new Map(sources).set(path, text);
    return violations(added)
      .filter((violation) => !before.has(violation))
      .join('\n');
  }

  test.each([
    ['core/job/a.ts', `import { x } from '../queries/operate/find-job.ts'`, 'not core/queries'],
    [
      'core/sql/a.ts',
      `import { x } from '../queries/operate/find-job.ts'`,
      'core/sql may import errors, core/schema, core/job, not core/queries',
    ],
    ['core/job/a.ts', `import type { Worker } from '../worker/worker.ts'`, 'not core/worker'],
    ['core/job/a.ts', `export { x } from '../queue/queue.ts'`, 'not core/queue'],
    ['core/job/a.ts', `import { sql } from 'drizzle-orm'`, 'job may not import this package'],
    ['core/job/a.ts', `import 'node:fs'`, 'job may not import this package'],
    ['core/queries/claim/a.ts', `import { x } from '../../time/sleep.ts'`, 'not core/time'],
    ['core/queries/claim/a.ts', `import { x } from '../../drivers/a.ts'`, 'no such file'],
    [
      'core/queries/claim/a.ts',
      `import { x } from 'drizzle-orm/postgres-js'`,
      'queries may not import this package',
    ],
    [
      'core/queries/claim/a.ts',
      `type A = import('node:events').EventEmitter`,
      'queries may not import this package',
    ],
    ['core/schema/a.ts', `import { x } from '../job/limits.ts'`, 'core/schema may import no other part'],
    ['skip-locked/a.ts', `import { x } from '../errors.ts'`, 'skip-locked may import no other part'],
    ['core/queue/a.ts', `const x = await import('../worker/drain.ts')`, 'must not load the worker'],
    ['core/worker/a.ts', `import pg from 'pg'`, 'worker may not import this package'],
    ['core/worker/a.ts', `const pg = require('pg')`, 'worker may not import this package'],
    ['core/worker/a.ts', `const a = await import(name)`, 'worker may not import this package'],
    ['index.ts', `export * from './skip-locked/index.ts'`, 'not skip-locked'],
    ['anything.ts', '', 'belongs to no part'],
    ['core/queries/claim/b.ts', `import { x } from '../../nowhere.ts'`, 'there is no such file'],
    [
      'core/time/a.ts',
      `import { x } from '../../features/limits/limits.ts'`,
      'core/time may import core/job, not features/limits',
    ],
    ['features/keys/a.ts', `import { x } from '../limits/limits.ts'`, 'not features/limits'],
    ['features/keys/a.ts', `import { x } from '../../entries/filter/filter.ts'`, 'not entries/filter'],
    ['features/keys/a.ts', `import { x } from '../../internal.ts'`, 'not internal'],
    ['entries/testing/a.ts', `import type { X } from '../../core/queue/queue.ts'`, 'not core/queue'],
    ['entries/dashboard/a.ts', `import { x } from '../../testing-face.ts'`, 'not testing-face'],
    ['entries/cli/a.ts', `import { x } from '../../features/limits/limits.ts'`, 'not features/limits'],
    ['entries/dashboard/a.tsx', `import { x } from '../../errors.ts'`, 'not errors'],
    ['entries/shards/a.ts', `import { x } from '../main/create-worker.ts'`, 'not entries/main'],
    [
      'core/worker/run/a.ts',
      `import { x } from '../claim/claims.ts'`,
      'against the order of core/worker: base < statements < run',
    ],
    ['core/worker/a/b.ts', `import { x } from '../run/handler.ts'`, 'in no folder of the order'],
    [
      'entries/dashboard/parts/a.tsx',
      `import { x } from '../deed.ts'`,
      'against the order of entries/dashboard: html.ts < answer.ts',
    ],
  ])('the wrong import of %s: %s', (path, text, message) => {
    expect(wrongWith(path, text)).toContain(message);
    expect(wrongWith(path, text)).toContain(path);
  });

  test.each([
    'Date.now()',
    'new Date()',
    'new Date',
    'setTimeout(f, 1)',
    'fetch(url)',
    'process.env.A',
    'const { env } = process',
    'f({ process })',
    'Math.random()',
    'const f = Math.random',
    'performance.now()',
    'globalThis.setTimeout(f)',
    '`$' + '{console.log(1)}`',
    'if (process) f()',
  ])('what is not pure: %s', (text) => {
    expect(wrongWith('core/job/a.ts', text)).toContain('core/job/a.ts uses ');
  });

  test.each([
    '// Date.now()',
    "'Date.now()'",
    'new Date(0)',
    'Date.parse(text)',
    'job.process()',
    'type A = typeof fetch',
    'f({ process: 1 })',
    'import { fetch } from "./limits.ts"',
  ])('nothing in %s', (text) => {
    expect(wrongWith('core/job/a.ts', text)).toBe('');
  });

  test('circles, also of types', () => {
    const circle = new Map([
      ['core/job/a.ts', `import type { B } from './b.ts'`],
      ['core/job/b.ts', `export { c } from './c.ts'`],
      ['core/job/c.ts', `import './b.ts'`],
    ]);
    expect(violations(circle)).toEqual([
      expect.stringContaining('core/job/b.ts -> core/job/c.ts -> core/job/b.ts is a circle'),
    ]);
  });

  test.each([
    'core/queries/utils.ts',
    'core/worker/claim-helpers.ts',
    'core/job/common/a.ts',
    'core/schema/types.ts',
    'lib/a.ts',
  ])('the name that says nothing: %s', (path) => {
    expect(wrongWith(path, '')).toContain('is named after no concept');
  });

  test.each(['core/schema/column-types.ts', 'core/worker/library.ts'])('nothing in the name %s', (path) => {
    expect(wrongWith(path, '')).toBe('');
  });

  test('lines that are too long, comments too', () => {
    expect(wrongWith('core/schema/a.ts', `// ${'…'.repeat(107)}`)).toBe('');
    expect(wrongWith('core/schema/a.ts', `f();\n// ${'…'.repeat(108)}`)).toContain(
      'core/schema/a.ts:2 is longer than 110 characters',
    );
  });

  test('every folder of the sources', () => {
    for (const path of sources.keys()) expect(partOf(path), dirname(path)).toBeDefined();
  });
});
