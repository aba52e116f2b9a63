import { dirname, join, posix } from 'node:path';
import ts from 'typescript';
import { type CodeBlock, type Page, root } from './pages.ts';

/**
 * Type-checks the `ts` blocks of pages, as modules that exist in memory only; answers one line per mistake, such as
 * `docs/workers.md:12: Property 'x' does not exist …`.
 *
 * - Each block is a module. `await` may stand at its top level.
 * - A block whose first line is a comment with a path, such as `// src/jobs.ts`, is that file: other blocks of its page can import
 *   it. The others stand in `src/`.
 * - A name that a block neither declares nor imports is looked for in the files of its page, and then in `prelude.ts`.
 * - ` ```ts ignore: REASON ` leaves a block out.
 *
 * @param project the tsconfig that says which drizzle-orm is meant
 */
export function checkTypes(pages: readonly Page[], project: string): string[] {
  const mistakes: string[] = [];
  const modules = new Map<string, { page: Page; block: CodeBlock; text: string }>();
  const options = optionsOf(project);
  const preludeNames = exportedNames(prelude, options);
  for (const page of pages) {
    const blocks = page.blocks.filter((block) => {
      const refusal = refusalOf(block);
      if (refusal !== undefined) mistakes.push(`${page.path}:${block.line - 1}: ${refusal}`);
      return block.language === 'ts' && block.info === '';
    });
    const folder = join(root, 'in-memory', page.path);
    const files = new Map<string, Set<string>>();
    for (const block of blocks) {
      const title = titleOf(block);
      if (title === undefined) continue;
      const path = join(folder, title);
      if (files.has(path)) mistakes.push(`${page.path}:${block.line}: the page has another ${title}`);
      files.set(path, namesIn(block.code).exported);
    }
    for (const block of blocks) {
      const path = join(folder, titleOf(block) ?? `src/line-${block.line}.ts`);
      const { used, declared } = namesIn(block.code);
      const imports: string[] = [];
      for (const name of used) {
        if (declared.has(name)) continue;
        const [file] = [...files].find(([other, names]) => other !== path && names.has(name)) ?? [];
        if (file !== undefined) imports.push(importOf(name, relativeTo(path, file)));
        else if (preludeNames.has(name)) imports.push(importOf(name, prelude));
      }
      // Behind the code, so that lines and columns stay as they are in the page.
      modules.set(path, { page, block, text: `${block.code}\nexport {}; ${imports.join(' ')}` });
    }
  }

  const texts = new Map([...modules].map(([path, { text }]) => [path, text]));
  const program = ts.createProgram([...modules.keys()], options, hostOf(options, texts));
  for (const [path, { page, block }] of modules) {
    const file = program.getSourceFile(path);
    for (const diagnostic of [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
    ]) {
      const line = file?.getLineAndCharacterOfPosition(diagnostic.start ?? 0).line ?? 0;
      const message = ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n  ');
      mistakes.push(`${page.path}:${block.line + line}: ${message}`);
    }
  }
  return mistakes;
}

const prelude = join(root, 'test/docs/prelude.ts');

/** TypeScript under another name would not be checked. */
const ALIASES = ['tsx', 'typescript', 'mts', 'cts', 'js', 'javascript'];

function refusalOf({ language, info }: CodeBlock): string | undefined {
  if (ALIASES.includes(language)) return `write \`\`\`ts instead of \`\`\`${language}, so that it is checked`;
  if (language !== 'ts' || info === '' || /^ignore: \S/.test(info)) return undefined;
  return `behind \`\`\`ts there may stand only "ignore: REASON", not "${info}"`;
}

function titleOf({ code }: CodeBlock): string | undefined {
  const title = /^\/\/ (\S+\.ts)$/m.exec(code.split('\n', 1)[0] ?? '')?.[1];
  return title === undefined ? undefined : posix.normalize(title);
}

function importOf(name: string, from: string): string {
  return `import { ${name} } from ${JSON.stringify(from)};`;
}

function relativeTo(from: string, to: string): string {
  const path = posix.relative(dirname(from), to);
  return path.startsWith('.') ? path : `./${path}`;
}

/** The names that a module uses anywhere, those that it declares or imports at its top level, and those that it exports. */
function namesIn(code: string): { used: Set<string>; declared: Set<string>; exported: Set<string> } {
  const file = ts.createSourceFile('block.ts', code, ts.ScriptTarget.ES2022, true);
  const used = new Set<string>();
  const declared = new Set<string>();
  const exported = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node)) used.add(node.text);
    ts.forEachChild(node, visit);
  };
  visit(file);
  for (const statement of file.statements) {
    const names = declaredBy(statement);
    for (const name of names) declared.add(name);
    if (ts.canHaveModifiers(statement) && ts.getModifiers(statement)?.some(isExport)) {
      for (const name of names) exported.add(name);
    }
  }
  return { used, declared, exported };
}

function isExport(modifier: ts.Modifier): boolean {
  return modifier.kind === ts.SyntaxKind.ExportKeyword;
}

function declaredBy(statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.flatMap(({ name }) => namesOf(name));
  }
  if (ts.isImportDeclaration(statement)) {
    const clause = statement.importClause;
    const named = clause?.namedBindings;
    return [
      ...(clause?.name === undefined ? [] : [clause.name.text]),
      ...(named === undefined
        ? []
        : ts.isNamespaceImport(named)
          ? [named.name.text]
          : named.elements.map(({ name }) => name.text)),
    ];
  }
  const isNamed =
    ts.isFunctionDeclaration(statement) ||
    ts.isClassDeclaration(statement) ||
    ts.isInterfaceDeclaration(statement) ||
    ts.isTypeAliasDeclaration(statement);
  return isNamed && statement.name !== undefined ? [statement.name.text] : [];
}

function namesOf(name: ts.BindingName): string[] {
  if (ts.isIdentifier(name)) return [name.text];
  return name.elements.flatMap((element) => (ts.isBindingElement(element) ? namesOf(element.name) : []));
}

/** The project's options, except for those that would ask more of an example than most projects ask. */
function optionsOf(project: string): ts.CompilerOptions {
  const parsed = ts.getParsedCommandLineOfConfigFile(
    join(root, project),
    {
      noUnusedLocals: false,
      noUnusedParameters: false,
      // So that `const [order] = await tx.insert(…).returning()` reads as in Drizzle's own documentation.
      noUncheckedIndexedAccess: false,
      verbatimModuleSyntax: false,
      isolatedModules: false,
    },
    { ...ts.sys, onUnRecoverableConfigFileDiagnostic: (diagnostic) => fail(diagnostic) },
  );
  if (parsed === undefined) throw new Error(`There is no ${project}`);
  return parsed.options;
}

function fail(diagnostic: ts.Diagnostic): never {
  throw new Error(ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n'));
}

function exportedNames(path: string, options: ts.CompilerOptions): Set<string> {
  const program = ts.createProgram([path], options, hostOf(options, new Map()));
  const checker = program.getTypeChecker();
  const file = program.getSourceFile(path);
  const module = file && checker.getSymbolAtLocation(file);
  if (module === undefined) throw new Error(`${path} is no module`);
  return new Set(checker.getExportsOfModule(module).map((symbol) => symbol.name));
}

/** Parsed once per process: the declarations of the libraries are most of the work. */
const parsed = new Map<string, ts.SourceFile | undefined>();

/** The file system, with some files that are not there. */
function hostOf(options: ts.CompilerOptions, texts: ReadonlyMap<string, string>): ts.CompilerHost {
  const host = ts.createCompilerHost(options);
  const folders = new Set([...texts.keys()].flatMap(foldersOf));
  return {
    ...host,
    fileExists: (path) => texts.has(path) || host.fileExists(path),
    directoryExists: (path) => folders.has(path) || ts.sys.directoryExists(path),
    readFile: (path) => texts.get(path) ?? host.readFile(path),
    getSourceFile: (path, languageVersion) => {
      const text = texts.get(path);
      if (text !== undefined) return ts.createSourceFile(path, text, languageVersion);
      if (!parsed.has(path)) parsed.set(path, host.getSourceFile(path, languageVersion));
      return parsed.get(path);
    },
  };
}

function foldersOf(path: string): string[] {
  const folder = dirname(path);
  return folder === path ? [folder] : [folder, ...foldersOf(folder)];
}
