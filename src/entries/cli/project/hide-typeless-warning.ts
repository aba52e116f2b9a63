let isHidden = false;

/**
 * Node.js advises an app without `"type": "module"` to add that, whenever it loads a config in TypeScript.
 * The loading works, and the advice would turn the whole app into ES modules.
 */
export function hideTypelessWarning(): void {
  if (isHidden) return;
  isHidden = true;
  process.emitWarning = new Proxy(process.emitWarning, {
    apply(emit, self, given: unknown[]) {
      if (Reflect.get(Object(given[1]), 'code') === 'MODULE_TYPELESS_PACKAGE_JSON') return;
      Reflect.apply(emit, self, given);
    },
  });
}
