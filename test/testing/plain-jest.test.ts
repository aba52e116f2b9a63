import { Script } from 'node:vm';
import { createTestDatabase } from 'drizzle-queue/testing';
import { expect, test, vi } from 'vitest';

test('createTestDatabase names the flag that plain Jest lacks', async () => {
  // What Node.js throws for an import() of code in a context of the kind that Jest makes.
  const script = new Script("import('node:fs')", {
    importModuleDynamically: () => {
      throw new Error('Node.js asks for the flag before it calls this');
    },
  });
  vi.doMock('@electric-sql/pglite', () => ({ PGlite: { create: () => script.runInThisContext() } }));
  await expect(createTestDatabase()).rejects.toThrow('NODE_OPTIONS=--experimental-vm-modules npx jest');
  vi.doUnmock('@electric-sql/pglite');
});
