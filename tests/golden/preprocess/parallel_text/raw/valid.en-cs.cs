Plošný graf
Na první straně Průvodce grafem si můžete zvolit typ grafu.
Zvolte Vložit - Graf
Vložit graf
Plošný
Graf s oblastmi zobrazuje hodnoty jako body na ose y. Osa x zobrazuje kategorie. Hodnoty každé datové řady jsou spojeny čárou. Oblasti mezi čárami jsou vybarveny barvou. Záměrem grafu je zdůraznit změny mezi jednotlivými kategoriemi.
