import { cookies } from 'next/headers';

/** Who asks. In earnest the session of your login. */
export async function currentUser(): Promise<string> {
  return (await cookies()).get('user')?.value ?? 'guest';
}
