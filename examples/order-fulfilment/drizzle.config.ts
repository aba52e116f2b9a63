import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: './examples/order-fulfilment/schema.ts',
  out: './examples/order-fulfilment/drizzle',
});
