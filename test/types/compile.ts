import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('../..', import.meta.url));
export const project = process.env.DRIZZLE === 'v1' ? 'tsconfig.v1.json' : 'tsconfig.json';

const parsed = new Map<string, ts.SourceFile | undefined>();

interface Compiled {
  readonly program: ts.Program;
  readonly mistakes: readonly string[];
  /** The type of an export, as an editor prints it. */
  printed(name: string): string;
}

/** Compiles a text as if it were a file in this folder. */
export function compile(text: string): Compiled {
  const config = ts.getParsedCommandLineOfConfigFile(
    join(root, project),
    {},
    { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => {} },
  );
  const options = { ...config?.options, noUnusedLocals: false, noUnusedParameters: false };
  const path = join(root, 'test/types/app.ts');
  const host = ts.createCompilerHost(options);
  const program = ts.createProgram([path], options, {
    ...host,
    fileExists: (name) => name === path || host.fileExists(name),
    readFile: (name) => (name === path ? text : host.readFile(name)),
    getSourceFile: (name, version) => {
      if (name === path) return ts.createSourceFile(name, text, version);
      // The declarations of the libraries are parsed once.
      if (!parsed.has(name)) parsed.set(name, host.getSourceFile(name, version));
      return parsed.get(name);
    },
  });
  const file = program.getSourceFile(path);
  const mistakes = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
  return {
    program,
    mistakes: mistakes.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n')),
    printed(name) {
      const checker = program.getTypeChecker();
      const symbol = file && checker.getSymbolAtLocation(file);
      const found = symbol && checker.tryGetMemberInModuleExports(name, symbol);
      if (found === undefined) throw new Error(`${name} is not exported`);
      return checker.typeToString(checker.getTypeOfSymbol(found), undefined, ts.TypeFormatFlags.NoTruncation);
    },
  };
}
