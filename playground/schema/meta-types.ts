/** `k8s.io/apimachinery/pkg/apis/meta/v1`, in the notation of parse.ts. */
export const metaTypes = `
ObjectMeta: What every stored object has: its names, its labels and its life cycle.
  name string | The name, unique in its namespace. It cannot be changed.
  generateName string | A prefix from which the server makes a unique name when \`name\` is empty.
  namespace string | The namespace the object lives in. It cannot be changed.
  selfLink string | Deprecated, no longer filled in.
  uid string | Unique in time and space, given by the server.
  resourceVersion string | An opaque version of the object, for concurrency control and watches.
  generation int64 | Counts the changes of the desired state.
  creationTimestamp Time | When the object was created.
  deletionTimestamp Time | When the object will be gone; set once its deletion was asked for.
  deletionGracePeriodSeconds int64 | Seconds the object may take to end by itself.
  labels {}string | Names and values to organise and select objects.
  annotations {}string | Names and values that carry data of tools and libraries; not for selecting.
  ownerReferences []OwnerReference merge=uid map=uid | The objects this one depends on; it is removed when they all are.
  finalizers []string merge set | Must be empty before the object is removed.
  managedFields []ManagedFieldsEntry | Which writer manages which fields.
OwnerReference: Identifies an owning object.
  apiVersion string! | API version of the owner.
  kind string! | Kind of the owner.
  name string! | Name of the owner.
  uid string! | UID of the owner.
  controller boolean | True when the owner is the managing controller.
  blockOwnerDeletion boolean | True when a foreground deletion of the owner waits for this object.
ManagedFieldsEntry: The fields that one writer manages.
  manager string | Name of the writer.
  operation string | Apply or Update.
  apiVersion string | Version of the object these fields are of.
  time Time | When the entry last changed.
  fieldsType string | The format of fieldsV1; only FieldsV1.
  fieldsV1 object | The set of fields.
  subresource string | The subresource that was written through, or empty.
ListMeta: What every list has.
  selfLink string | Deprecated, no longer filled in.
  resourceVersion string | The version of the list, to start a watch at.
  continue string | Given back to read the next page.
  remainingItemCount int64 | How many objects follow this page.
LabelSelector: A query over labels; all of its requirements must hold.
  matchLabels {}string | Each name must have this value.
  matchExpressions []LabelSelectorRequirement | Further requirements.
LabelSelectorRequirement: A requirement with a key, an operator and values.
  key string! | The label.
  operator string! | In, NotIn, Exists or DoesNotExist.
  values []string | The values for In and NotIn.
Condition: One aspect of the current state.
  type string! | Name of the condition.
  status string! | True, False or Unknown.
  observedGeneration int64 | The generation this was worked out from.
  lastTransitionTime Time! | When the status last changed.
  reason string! | A word that programs can match.
  message string! | A sentence for people.
Preconditions: What must hold before a deletion is carried out.
  uid string | The UID of the object.
  resourceVersion string | The version of the object.
DeleteOptions: How to delete.
  apiVersion string
  kind string
  gracePeriodSeconds int64 | Seconds before the object is removed; zero means now.
  preconditions Preconditions | What must hold.
  orphanDependents boolean | Deprecated, use propagationPolicy.
  propagationPolicy string | Orphan, Background or Foreground.
  dryRun []string | All: nothing is stored.
  ignoreStoreReadErrorWithClusterBreakingPotential boolean
`
