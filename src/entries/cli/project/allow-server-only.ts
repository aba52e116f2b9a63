import module, { createRequire } from 'node:module';

/** What `@types/node` does not know before version 22. */
interface SyncHooks {
  registerHooks?(hooks: {
    resolve(
      specifier: string,
      context: { readonly conditions: readonly string[] },
      next: (specifier: string) => unknown,
    ): unknown;
  }): void;
}

const NAME = 'server-only';
const NOTHING = { url: 'data:text/javascript,', format: 'module', shortCircuit: true };
const { registerHooks }: SyncHooks = Object(module);

let isHooked = false;

/**
 * Lets a file of the app, and what it imports, `import 'server-only'`: no command runs in a browser. The
 * package throws unless Node.js has `--conditions=react-server`, and with that `react-dom/server` throws.
 */
export function allowServerOnly(path: string): void {
  const require = createRequire(path);
  let file: string;
  try {
    file = require.resolve(NAME);
  } catch {
    return;
  }
  // As if it had been loaded before: for what is compiled to CommonJS.
  const loaded = new module.Module(file);
  loaded.loaded = true;
  require.cache[file] = loaded;
  if (!isHooked) hookImports();
  isHooked = true;
}

function hookImports(): void {
  if (registerHooks !== undefined) {
    registerHooks({
      resolve: (specifier, { conditions }, next) =>
        specifier === NAME && conditions.includes('import') ? NOTHING : next(specifier),
    });
    return;
  }
  // Before Node.js 22.15 such a hook runs in a thread of its own, which is given its source.
  const source = `export const resolve = (specifier, _, next) =>
    specifier === '${NAME}' ? ${JSON.stringify(NOTHING)} : next(specifier);`;
  module.register(`data:text/javascript,${encodeURIComponent(source)}`);
}
