/** Placeholders until the pages are there. */
export const HomePage = () => <p class="page">Home</p>;
export const IncidentsPage = () => <p class="page">Incidents</p>;
export const IncidentPage = () => <p class="page">Incident</p>;
export const CgroupsPage = () => <p class="page">Cgroups</p>;
export const AuditPage = () => <p class="page">Audit</p>;
