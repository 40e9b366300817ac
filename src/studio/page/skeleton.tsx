/** The place of content that is still being read. */

export const Skeleton = ({ label }: { label: string }) => (
  <div class="skeleton" role="status" aria-label={label}>
    <i />
    <i />
    <i />
    <i />
  </div>
)
