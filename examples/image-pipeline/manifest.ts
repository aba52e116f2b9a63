import { z } from 'zod';

/** What an image was made into. */
export const manifestSchema = z.object({
  width: z.int(),
  height: z.int(),
  variants: z.array(z.object({ key: z.string(), width: z.int(), height: z.int(), bytes: z.int() })),
});

export type Manifest = z.infer<typeof manifestSchema>;
