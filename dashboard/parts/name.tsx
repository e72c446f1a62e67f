/** `namespace/name` as people read it: the name first. */
export function ServiceName({ of }: { readonly of: string }) {
  const [namespace = '', name = ''] = of.split('/')
  return (
    <>
      <b>{name}</b> <span class="soft">{namespace}</span>
    </>
  )
}
