import { defineConfig } from 'drizzle-kit';

/** The library's own tables, so that `drizzle/` always holds what drizzle-kit makes of `src/core/schema`. */
export default defineConfig({
  dialect: 'postgresql',
  schema: './src/core/schema/index.ts',
  out: './drizzle',
});
